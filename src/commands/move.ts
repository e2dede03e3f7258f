import { existsSync, renameSync } from 'node:fs'
import { databaseFile, readEnvironment } from '../config/environment.ts'
import { installationSecret } from '../config/installation-secret.ts'
import { hadOtherSecret } from '../keys/first-start.ts'
import { makeSecretKeys } from '../keys/secret-keys.ts'
import { checkLedger, type Breach } from '../store/check.ts'
import { copyStore, versionOf, type Copied } from '../store/copy.ts'
import { recoverAll } from '../store/ledger.ts'
import { cannotOpen, openStore, type Store, type StoreOptions } from '../store/open.ts'
import { claimSingleNode, FolderInUse, type SingleNode } from '../store/single-node.ts'
import { foldIntoOneFile } from '../store/sqlite.ts'
import { say, sayJson, sheet } from './output.ts'

// A batch of rows takes far less, even on a busy server.
const waitMs = 60_000

/**
 * `turnpike move-to-postgres`: copies the folder's SQLite into the PostgreSQL of DATABASE_URL, checks the copy, and
 * puts the file aside, so that balances are never spent in both places.
 */
export async function moveToPostgres(options: { json?: boolean }): Promise<void> {
  const environment = readEnvironment(process.env)
  const { databaseUrl: url, dataFolder, secret } = environment
  if (url === undefined) throw new Error('set DATABASE_URL to the PostgreSQL database to move to')
  const file = databaseFile(environment)
  const aside = `${file}.moved`
  if (!existsSync(file)) throw new Error(`there is no database at ${file}`)
  if (existsSync(aside)) throw new Error(`${aside} is from an earlier move: put it elsewhere first`)
  const lock = claimFolder(dataFolder)
  try {
    foldIntoOneFile(file) // also after the copy; but a program that is in the way of that should be named before it
    const copied = await withStore({ file }, async (from) => {
      if (await hadOtherSecret(from, makeSecretKeys(installationSecret(secret, dataFolder)))) {
        throw new Error(`TURNPIKE_SECRET must be the secret that ${dataFolder} was used with, or no key would work`)
      }
      return withStore({ url, waitMs }, (to) => copyChecked(from, to))
    })
    // The files beside it keep their names: with what only they hold, the books that are put aside would not be whole.
    foldIntoOneFile(file)
    renameSync(file, aside)
    report(copied, { dataFolder, aside, json: options.json })
  } finally {
    lock.release()
  }
}

/** What a start is told, to take a folder of its own, would not help here. */
function claimFolder(folder: string): SingleNode {
  try {
    return claimSingleNode(folder)
  } catch (thrown) {
    if (!(thrown instanceof FolderInUse)) throw thrown
    throw new Error(`a gateway is running on ${folder}: stop it first`, { cause: thrown })
  }
}

async function withStore<T>(place: StoreOptions, work: (store: Store) => Promise<T>): Promise<T> {
  const store = await openStore(place).catch((thrown: unknown) => {
    throw cannotOpen(place, thrown)
  })
  try {
    return await work(store)
  } finally {
    await store.close()
  }
}

/**
 * Copies the books as they are, faults included; refuses a copy that has others, or that another command has outrun.
 */
export async function copyChecked(from: Store, to: Store): Promise<Copied> {
  // As at a start on SQLite: a hold that is open now belongs to a process that is gone.
  await recoverAll(from)
  const version = await versionOf(from)
  const copied = await copyStore(from, to)
  const found = await checkLedger(to)
  // Checked last, so that a hold that became overdue in between is overdue in both.
  const known = new Set((await checkLedger(from)).map(nameOf))
  const added = found.filter((breach) => !known.has(nameOf(breach)))
  if (added.length > 0) {
    const first = added.slice(0, 3).map(({ rule, subject, why }) => `${rule} ${subject}: ${why}`)
    throw new Error(`the copy has faults that the original has not, and must not be used: ${first.join('; ')}`)
  }
  if ((await versionOf(from)) === version) return copied
  throw new Error('another command changed the database meanwhile: try again with another empty database')
}

function nameOf({ rule, subject }: Breach): string {
  return `${rule} ${subject}`
}

type Moved = { readonly dataFolder: string; readonly aside: string; readonly json: boolean | undefined }

function report(copied: Copied, { dataFolder, aside, json }: Moved): void {
  const { account: accounts, api_key: keys, request: requests, txn: postings, task: tasks } = copied
  const counts = { accounts, keys, requests, postings, tasks }
  if (json) return sayJson({ ...counts, kept: aside })
  say(sheet(Object.fromEntries(Object.entries(counts).map(([name, count]) => [name, String(count)]))))
  say()
  say(`All of it is in PostgreSQL now, and the books are as they were. The old file is kept as ${aside}.`)
  say(`Start this node as before, with DATABASE_URL and TURNPIKE_SECRET set: it goes on in ${dataFolder}.`)
}
