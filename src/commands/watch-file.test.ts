import { expect, test } from 'bun:test'
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../test/support/gateway.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { watchFile } from './watch-file.ts'

test.each([
  ['removed', (folder: string) => rmSync(folder, { recursive: true })],
  ['moved away', (folder: string) => renameSync(folder, `${folder}-before`)],
])('a file is watched on after its folder was %s and made anew', async (_how, remove) => {
  const folder = join(temporaryFolder('watched'), 'settings')
  const file = join(folder, 'turnpike.yaml')
  const make = () => {
    mkdirSync(folder)
    writeFileSync(file, 'models: []')
  }
  make()
  let changes = 0
  watchFile(file, { changed: () => changes++, cannot: (_folder, thrown) => expect(thrown).toBeUndefined() })
  remove(folder)
  make()
  await until(() => changes >= 1)
  writeFileSync(file, 'channels: []')
  await until(() => changes >= 2)
})
