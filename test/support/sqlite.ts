import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '../../src/store/open.ts'
import { temporaryFolder } from './temporary-folder.ts'

const templateKey = Symbol.for('turnpike.test.sqlite')
type Shared = { [templateKey]?: Promise<Uint8Array> }

/** Copies a new database from a template, because migrating each took longer than opening the gateway on it. */
export async function writeFreshSqlite(file: string): Promise<void> {
  // On globalThis, because test files may each get their own copy of this module.
  const shared = globalThis as Shared
  shared[templateKey] ??= makeTemplate()
  // As the product does: SQLite gives the files beside it the same mode.
  writeFileSync(file, await shared[templateKey], { mode: 0o600 })
}

async function makeTemplate(): Promise<Uint8Array> {
  const file = join(temporaryFolder('sqlite'), 'turnpike.sqlite')
  const store = await openStore({ file })
  await store.close()
  return readFileSync(file)
}
