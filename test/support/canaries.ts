import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import type { Store } from '../../src/store/open.ts'

/** A unique string: wherever it is found, it was carried there. */
export type Canary = string & { readonly __canary: true }

// Half of a key counts as a leak too; its last four characters do not.
const needleCharacters = 16
/** Part of both halves of every canary, so that one search tells whether a place can hold any. */
const canaryMark = 'ca4a41'

/** A canary that begins like a secret of its kind. */
export function canary(prefix = ''): Canary {
  return (prefix + canaryHalf() + canaryHalf()) as Canary
}

function canaryHalf(): string {
  return (canaryMark + randomBytes(needleCharacters).toString('hex')).slice(0, needleCharacters)
}

const secretCharactersMin = 24

/** A secret that the gateway made and showed once also serves as a canary. */
export function asCanary(secret: string): Canary {
  if (secret.length < secretCharactersMin) throw new Error(`"${secret}" is too short to be told from others`)
  return secret as Canary
}

/** The encodings in which a text may appear: plain, hex, and base64 at each alignment. */
function encodingsOf(text: string): Buffer[] {
  const hex = Buffer.from(text).toString('hex')
  return [Buffer.from(text), Buffer.from(hex), ...[0, 1, 2].map((shift) => base64Inside(text, shift))]
}

const encodedMarks = encodingsOf(canaryMark)

function needlesOf(secret: Canary): Buffer[] {
  const halves = [secret.slice(-needleCharacters), secret.slice(-needleCharacters * 2, -needleCharacters)]
  return halves.flatMap(encodingsOf)
}

/** The part of a text's base64 that does not depend on the bytes around it. */
function base64Inside(text: string, shift: number): Buffer {
  const written = Buffer.concat([Buffer.alloc(shift), Buffer.from(text)]).toString('base64')
  // A base64 character holds six bits; those that share a bit with a neighbour are left out.
  const from = Math.ceil((shift * 8) / 6)
  const to = Math.floor(((shift + text.length) * 8) / 6)
  return Buffer.from(written.slice(from, to))
}

/** Everything that could be read afterwards, each piece with the name of its place. */
export type Places = {
  add(place: string, content: string | Uint8Array): void
  /** Every file under a folder; `nameOf` gives the places their names. */
  addFolder(folder: string, nameOf?: (path: string) => string): void
  /** Every column of every table. */
  addTables(store: Store): Promise<void>
  /** For each canary, the places where it was found. */
  find(canaries: Readonly<Record<string, Canary>>): Record<string, string[]>
}

export function makePlaces(): Places {
  const contents: { readonly place: string; readonly bytes: Buffer; readonly mayHoldCanary: boolean }[] = []
  const add = (place: string, content: string | Uint8Array) => {
    const bytes = Buffer.from(content)
    contents.push({ place, bytes, mayHoldCanary: encodedMarks.some((each) => bytes.includes(each)) })
  }
  return {
    add,
    addFolder(folder, nameOf = (path) => path) {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name)
        add('names of files', entry.name)
        const bytes = entry.isFile() ? readFileSync(path) : undefined
        // The journal reserves 64 MiB of zeros for itself.
        if (bytes === undefined || bytes.equals(Buffer.alloc(bytes.length))) continue
        add(nameOf(path.slice(folder.length + 1)), bytes)
      }
    },
    async addTables(store) {
      const db = store.db.withoutPlugins()
      for (const { name: table } of await db.introspection.getTables({ withInternalKyselyTables: true })) {
        const { rows } = await sql<Record<string, unknown>>`select * from ${sql.table(table)}`.execute(db)
        for (const row of rows) {
          for (const [column, value] of Object.entries(row)) add(`${table}.${column}`, String(value))
        }
      }
    },
    find(canaries) {
      const found = Object.entries(canaries).map(([name, secret]) => {
        const needles = needlesOf(secret)
        const isOurs = secret.includes(canaryMark)
        const holding = contents.filter((content) => {
          return (!isOurs || content.mayHoldCanary) && needles.some((needle) => content.bytes.includes(needle))
        })
        return [name, [...new Set(holding.map(({ place }) => place))].toSorted()] as const
      })
      return Object.fromEntries(found)
    },
  }
}
