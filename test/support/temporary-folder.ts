import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/**
 * Its input ends when the test process ends, however that happens: `bun test` runs no exit handlers, and a test that
 * fails may not reach the line that removes its folder. Detached, it survives a kill -9 for the whole group.
 */
const remover = `
  trap '' INT TERM HUP
  cat > /dev/null
  rm -rf "$0"
`

const rootKey = Symbol.for('turnpike.test.folder')
type Root = { readonly folder: string; readonly remover: ChildProcess }
type Shared = { [rootKey]?: Root }

/** A new folder, which is removed after this process at the latest. */
export function temporaryFolder(name: string): string {
  // On globalThis, because test files may each get their own copy of this module.
  const shared = globalThis as Shared
  shared[rootKey] ??= makeRoot()
  return mkdtempSync(join(shared[rootKey].folder, `${name}-`))
}

/** The child is kept, because its input would end if it were collected as garbage. */
function makeRoot(): Root {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-tests-'))
  const child = spawn('/bin/sh', ['-c', remover, folder], {
    cwd: '/',
    stdio: ['pipe', 'ignore', 'ignore'],
    detached: true,
  })
  child.unref()
  return { folder, remover: child }
}
