import { isScalar, LineCounter, parseDocument, visit, type Document } from 'yaml'
import type { z } from 'zod'
import { writeFieldPath } from '../base/field-path.ts'
import { fileSchema, type FileSettings } from './schema.ts'

type Path = readonly PropertyKey[]

/** Something wrong in the file, said with the place it stands at. */
export type Complaint = {
  readonly line: number
  readonly column: number
  readonly path: string
  readonly message: string
}

export class ConfigError extends Error {
  readonly complaints: readonly Complaint[]

  constructor(name: string, complaints: readonly Complaint[]) {
    super(complaints.map((complaint) => describe(name, complaint)).join('\n'))
    this.name = 'ConfigError'
    this.complaints = complaints
  }
}

export type ConfigFile = {
  readonly settings: FileSettings
  /** For whoever checks more than the schema can: a complaint about a path becomes one about a line. */
  complain(path: Path, message: string): ConfigError
}

const substitution = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** Parses, fills in `${VARIABLES}`, and checks. Throws a ConfigError with every complaint, never with a value of a secret. */
export function readConfigFile(
  name: string,
  text: string,
  environment: Record<string, string | undefined>,
): ConfigFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines })
  const broken = document.errors.map(({ linePos, message }) => ({
    line: linePos?.[0].line ?? 1,
    column: linePos?.[0].col ?? 1,
    path: '',
    message: message.split('\n')[0] ?? message,
  }))
  if (broken.length > 0) throw new ConfigError(name, broken)

  const missing = substitute(document, lines, environment)
  if (missing.length > 0) throw new ConfigError(name, missing)

  const complaintAt = (path: Path, message: string): Complaint => ({
    ...positionOf(document, lines, path),
    path: writeFieldPath(path),
    message,
  })
  const parsed = fileSchema.safeParse(document.toJS() ?? {})
  if (!parsed.success) {
    throw new ConfigError(
      name,
      parsed.error.issues.map((issue) => complaintAt(pathOf(issue), issue.message)),
    )
  }
  return {
    settings: parsed.data,
    complain: (path, message) => new ConfigError(name, [complaintAt(path, message)]),
  }
}

function substitute(
  document: Document,
  lines: LineCounter,
  environment: Record<string, string | undefined>,
): Complaint[] {
  const missing: Complaint[] = []
  visit(document, {
    Scalar(_key, node) {
      if (typeof node.value !== 'string') return
      node.value = node.value.replace(substitution, (_match, variable: string) => {
        const value = environment[variable]
        if (value !== undefined && value !== '') return value
        const { line, col } = lines.linePos(node.range?.[0] ?? 0)
        missing.push({ line, column: col, path: '', message: `the variable ${variable} is not set` })
        return ''
      })
    },
  })
  return missing
}

/** An unknown key is complained about where it stands, not where its parent does. */
function pathOf(issue: z.core.$ZodIssue): Path {
  return issue.code === 'unrecognized_keys' ? [...issue.path, issue.keys[0] ?? ''] : issue.path
}

function positionOf(document: Document, lines: LineCounter, path: Path): { line: number; column: number } {
  for (let length = path.length; length >= 0; length--) {
    const node = document.getIn(path.slice(0, length), true)
    const start = isScalar(node) || isRanged(node) ? node.range?.[0] : undefined
    if (start !== undefined) {
      const { line, col } = lines.linePos(start)
      return { line, column: col }
    }
  }
  return { line: 1, column: 1 }
}

function isRanged(node: unknown): node is { range?: readonly number[] | null } {
  return typeof node === 'object' && node !== null && 'range' in node
}

function describe(name: string, { line, column, path, message }: Complaint): string {
  return `${name}:${line}:${column}${path === '' ? '' : ` ${path}`}: ${message}`
}
