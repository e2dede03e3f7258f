import { randomBytes } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import type { Store } from '../../src/store/open.ts'

/** A word that stands nowhere else in the world, so that wherever it is found, it was carried there. */
export type Canary = string & { readonly __canary: true }

// Half of a key is a leak too; its last four characters are not.
const needleCharacters = 16
/** In both halves of each of them, so that one look tells whether there is anything to find. */
const song = 'ca4a41'

/** With whatever a secret of its kind begins with. */
export function canary(prefix = ''): Canary {
  return (prefix + verse() + verse()) as Canary
}

function verse(): string {
  return (song + randomBytes(needleCharacters).toString('hex')).slice(0, needleCharacters)
}

const secretCharactersMin = 24

/** A secret that the gateway made and showed once is as good a canary. */
export function asCanary(secret: string): Canary {
  if (secret.length < secretCharactersMin) throw new Error(`"${secret}" is too short to be told from others`)
  return secret as Canary
}

/** A text as it is, and in the clothes that bytes usually wear. */
function dressed(text: string): Buffer[] {
  const hex = Buffer.from(text).toString('hex')
  return [Buffer.from(text), Buffer.from(hex), ...[0, 1, 2].map((shift) => base64Inside(text, shift))]
}

const songs = dressed(song)

function needlesOf(secret: Canary): Buffer[] {
  const halves = [secret.slice(-needleCharacters), secret.slice(-needleCharacters * 2, -needleCharacters)]
  return halves.flatMap(dressed)
}

/** What stays the same of a text in base64, whatever stands before and behind it. */
function base64Inside(text: string, shift: number): Buffer {
  const written = Buffer.concat([Buffer.alloc(shift), Buffer.from(text)]).toString('base64')
  // A character of base64 is six bits: those that hold a bit of a neighbour are left out.
  const from = Math.ceil((shift * 8) / 6)
  const to = Math.floor(((shift + text.length) * 8) / 6)
  return Buffer.from(written.slice(from, to))
}

/** Everything that somebody could read afterwards, each with the name of the place where it lies. */
export type Places = {
  add(place: string, content: string | Uint8Array): void
  /** Every file under a folder; `nameOf` gives the places their names. */
  addFolder(folder: string, nameOf?: (path: string) => string): void
  /** Every column of every table. */
  addTables(store: Store): Promise<void>
  /** For each canary by its name, the places where it stands. */
  find(canaries: Readonly<Record<string, Canary>>): Record<string, string[]>
}

export function makePlaces(): Places {
  const contents: { readonly place: string; readonly bytes: Buffer; readonly sings: boolean }[] = []
  const add = (place: string, content: string | Uint8Array) => {
    const bytes = Buffer.from(content)
    contents.push({ place, bytes, sings: songs.some((each) => bytes.includes(each)) })
  }
  return {
    add,
    addFolder(folder, nameOf = (path) => path) {
      for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
        const path = join(entry.parentPath, entry.name)
        add('names of files', entry.name)
        const bytes = entry.isFile() ? readFileSync(path) : undefined
        // The journal keeps room for itself: 64 MiB of nothing.
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
        const isOurs = secret.includes(song)
        const holding = contents.filter((content) => {
          return (!isOurs || content.sings) && needles.some((needle) => content.bytes.includes(needle))
        })
        return [name, [...new Set(holding.map(({ place }) => place))].toSorted()] as const
      })
      return Object.fromEntries(found)
    },
  }
}
