import { createRequire } from 'node:module'
import type * as yaml from 'yaml'
import type { z } from 'zod'
import { messageOf } from '../base/errors.ts'
import { writeFieldPath } from '../base/field-path.ts'
import { plainWords } from './plain-words.ts'
import { fileSchema, type FileSettings } from './schema.ts'
import { quotedStar, syntaxFaults } from './syntax-faults.ts'

type Path = readonly PropertyKey[]

/** Something that is wrong in the file, with its position. */
export type Complaint = {
  readonly line: number
  readonly column: number
  readonly path: string
  readonly message: string
}

/** A fault of a value that has a complaint already only follows from it. */
export function isAmong(complaints: readonly Complaint[], { line, column }: Complaint): boolean {
  return complaints.some((one) => one.line === line && one.column === column)
}

/** The order of the file: an operator mends it from the top to its end. */
function byPosition(a: Position, b: Position): number {
  return a.line - b.line || a.column - b.column
}

export class ConfigError extends Error {
  readonly file: string
  readonly complaints: readonly Complaint[]

  constructor(file: string, complaints: readonly Complaint[]) {
    const ordered = complaints.toSorted(byPosition)
    super(ordered.map((complaint) => describe(file, complaint)).join('\n'))
    this.name = 'ConfigError'
    this.file = file
    this.complaints = ordered
  }
}

export type ConfigFile = {
  readonly settings: FileSettings
  /** For checks beyond the schema: turns a complaint about a path into an error that names its line. */
  complain(path: Path, message: string): ConfigError
}

// The second and third alternatives are how shells and other tools spell a variable: as text, they would be sent to a
// vendor as its key.
const substitution = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}|\$\{[^}]*\}?|^\$[A-Za-z_][A-Za-z0-9_]*$/g

/** Parses, fills in `${VARIABLES}`, and checks. Throws a ConfigError with all complaints, but no values of secrets. */
export function readConfigFile(
  name: string,
  text: string,
  environment: Record<string, string | undefined>,
): ConfigFile {
  const { file, unset } = readUnfilled(name, text, environment)
  if (unset !== undefined) throw unset
  return file
}

/** For further checks, not for use: variables that `unset` complains of stand in the settings as they are written. */
export type UnfilledFile = { readonly file: ConfigFile; readonly unset: ConfigError | undefined }

/** Reads a file that may lack variables, as on a machine without the secrets. */
export function readUnfilled(
  name: string,
  text: string,
  environment: Record<string, string | undefined>,
): UnfilledFile {
  const written = text === '' ? nothing : readYaml(name, text, environment)
  const complaintAt = (path: Path, message: string): Complaint => ({
    ...written.positionOf(path),
    path: writeFieldPath(path),
    message,
  })
  const { unset } = written
  const parsed = fileSchema.safeParse(written.value, plainWords)
  if (!parsed.success) {
    const faults = parsed.error.issues.flatMap(faultsOf).map(({ path, message }) => complaintAt(path, message))
    throw new ConfigError(name, [...unset, ...faults.filter((fault) => !isAmong(unset, fault))])
  }
  return {
    file: {
      settings: parsed.data,
      complain: (path, message) => new ConfigError(name, [complaintAt(path, message)]),
    },
    unset: unset.length > 0 ? new ConfigError(name, unset) : undefined,
  }
}

/** The value of a text, the position of each of its parts, and what could not be filled in. */
type Written = { readonly value: unknown; positionOf(path: Path): Position; readonly unset: readonly Complaint[] }
type Position = { readonly line: number; readonly column: number }

const beginning: Position = { line: 1, column: 1 }
const nothing: Written = { value: {}, positionOf: () => beginning, unset: [] }

type Yaml = typeof yaml

/** A text once it is parsed, with what tells the positions in it. */
type Parsed = { readonly parser: Yaml; readonly document: yaml.Document; readonly lines: yaml.LineCounter }

/** The parser that knows line numbers takes 40 ms to load, so a start without a file does not load it. */
function loadYaml(): Yaml {
  return createRequire(import.meta.url)('yaml')
}

function readYaml(name: string, text: string, environment: Record<string, string | undefined>): Written {
  const parser = loadYaml()
  const lines = new parser.LineCounter()
  const document = parser.parseDocument(text, { lineCounter: lines })
  const broken = syntaxFaults(text, document.errors).map((fault) => ({ ...fault, path: '' }))
  if (broken.length > 0) throw new ConfigError(name, broken)

  const parsed = { parser, document, lines }
  const { unset, unanchored } = substitute(parsed, environment)
  if (unanchored.length > 0) throw new ConfigError(name, [...unset, ...unanchored])
  return { value: valueOf(name, document), positionOf: (path) => positionOf(parsed, path), unset }
}

/** Aliases of aliases can expand to more than any memory holds: the parser then gives up, without naming a line. */
function valueOf(name: string, document: yaml.Document): unknown {
  try {
    return document.toJS() ?? {}
  } catch (thrown) {
    throw new ConfigError(name, [{ ...beginning, path: '', message: messageOf(thrown) }])
  }
}

/**
 * Replaces variables by their values, and complains about every variable and every anchor that does not exist. Such a
 * variable stays as it is written, in place of a value.
 */
function substitute({ parser, document, lines }: Parsed, environment: Record<string, string | undefined>) {
  const unset: Complaint[] = []
  const unanchored: Complaint[] = []
  const complaint = (node: yaml.Scalar | yaml.Alias, around: unknown, message: string): Complaint => {
    const key = parser.isPair(around) && around.value === node ? around.key : undefined
    return { ...(placeOf(node, key, lines) ?? beginning), path: '', message }
  }
  parser.visit(document, {
    Alias(_key, node, ancestors) {
      if (node.resolve(document) !== undefined) return
      const message = `there is no anchor &${node.source} above this line; ${quotedStar}`
      unanchored.push(complaint(node, ancestors.at(-1), message))
    },
    Scalar(_key, node, ancestors) {
      if (typeof node.value !== 'string') return
      const around = ancestors.at(-1)
      node.value = node.value.replace(substitution, (written, variable: string | undefined) => {
        if (variable === undefined) {
          const message = 'a variable is written as ${NAME}, without a default or anything else beside its name'
          unset.push(complaint(node, around, message))
          return written
        }
        const value = environment[variable]
        if (value !== undefined && value !== '') return value
        unset.push(complaint(node, around, `the variable ${variable} is not set`))
        return written
      })
    },
  })
  return { unset, unanchored }
}

type Fault = { readonly path: Path; readonly message: string }

/** Each unknown key gets its own complaint, at its own position and not at its parent's. */
function faultsOf(issue: z.core.$ZodIssue): Fault[] {
  const { path } = issue
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) => ({ path: [...path, key], message: issue.message }))
  }
  if (issue.code === 'invalid_key') return [{ path, message: issue.issues[0]?.message ?? issue.message }]
  return [{ path, message: issue.message }]
}

function positionOf(parsed: Parsed, path: Path): Position {
  const { document, lines } = parsed
  for (let length = path.length; length >= 0; length--) {
    const reached = path.slice(0, length)
    const place = placeOf(document.getIn(reached, true), keyOf(parsed, reached), lines)
    if (place !== undefined) return place
  }
  return beginning
}

/** Where a value begins or, if that is on a line below its key, where the key begins. */
function placeOf(value: unknown, key: unknown, lines: yaml.LineCounter): Position | undefined {
  const [ofValue, ofKey] = [startOf(value, lines), startOf(key, lines)]
  return ofValue !== undefined && ofKey !== undefined && ofKey.line < ofValue.line ? ofKey : ofValue
}

/** The key of an entry of a map. The document and the items of lists have none. */
function keyOf({ parser, document }: Parsed, path: Path): unknown {
  const map: unknown = path.length === 0 ? undefined : document.getIn(path.slice(0, -1), true)
  if (!parser.isMap(map)) return undefined
  return map.items.find(({ key }) => parser.isScalar(key) && key.value === path.at(-1))?.key
}

function startOf(node: unknown, lines: yaml.LineCounter): Position | undefined {
  const start = isRanged(node) ? node.range?.[0] : undefined
  if (start === undefined) return undefined
  const { line, col } = lines.linePos(start)
  return { line, column: col }
}

function isRanged(node: unknown): node is { range?: readonly number[] | null } {
  return typeof node === 'object' && node !== null && 'range' in node
}

function describe(file: string, { line, column, path, message }: Complaint): string {
  return `${file}:${line}:${column}${path === '' ? '' : ` ${path}`}: ${message}`
}
