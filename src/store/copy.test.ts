import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { versionOf } from './copy.ts'
import { openStore } from './open.ts'
import { writeSetting } from './settings.ts'

test('what another connection writes changes the version of a file, and what its own writes does not', async () => {
  const file = join(temporaryFolder('turnpike-copy-'), 'turnpike.sqlite')
  const [store, other] = [await openStore({ file }), await openStore({ file })]
  const before = await versionOf(store)
  await writeSetting(store.db, 'a', '1')
  expect(await versionOf(store)).toBe(before)
  await writeSetting(other.db, 'a', '2')
  expect(await versionOf(store)).not.toBe(before)
  await Promise.all([store.close(), other.close()])
})
