import { expect, test } from 'bun:test'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../test/support/gateway.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { watchFile } from './watch-file.ts'

test('a file is watched on after its folder was replaced', async () => {
  const folder = join(temporaryFolder('watched'), 'settings')
  const file = join(folder, 'turnpike.yaml')
  const replace = () => {
    rmSync(folder, { recursive: true, force: true })
    mkdirSync(folder)
    writeFileSync(file, 'models: []')
  }
  replace()
  let changes = 0
  watchFile(file, { changed: () => changes++, cannot: (_folder, thrown) => expect(thrown).toBeUndefined() })
  replace()
  await until(() => changes >= 1)
  writeFileSync(file, 'channels: []')
  await until(() => changes >= 2)
})
