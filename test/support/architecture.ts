import { dirname, join, normalize } from 'node:path/posix'

/** A source file as the checks see it: its path from the root of the project, and its text. */
export type Source = { readonly path: string; readonly text: string }

/** The rooms and their levels: a room may use its own files and rooms of a lower level. The exceptions follow below. */
export const levels = {
  base: 0,
  capabilities: 1,
  telemetry: 1,
  config: 2,
  media: 2,
  wire: 2,
  edge: 2,
  vendors: 3,
  catalogue: 3,
  store: 3,
  keys: 4,
  reports: 4,
  limits: 4,
  idempotency: 4,
  artifacts: 4,
  billing: 4,
  tasks: 4,
  upstream: 4,
  flow: 5,
  http: 6,
  mcp: 6,
  admin: 6,
} as const satisfies Record<string, number>

type Room = keyof typeof levels

/** Rooms that a room may use although they are not on a lower level. */
const alsoUses: { readonly [R in Room]?: readonly Room[] } = { tasks: ['billing', 'upstream'] }

/** Rooms that a room may not use although they are lower: the flow knows asks and answers, never a protocol. */
const neverUses: { readonly [R in Room]?: readonly Room[] } = { flow: ['wire'] }

/** The simulators must not share a mistake with the gateway, so they may use almost nothing of it. */
const apart = { sandbox: ['base'] } as const satisfies Record<string, readonly Room[]>

/** These compose the gateway and may use every room. */
const composing = new Set([
  'commands',
  'gateway.ts',
  'foundation.ts',
  'market.ts',
  'plan.ts',
  'simulated.ts',
  'books.ts',
  'main.ts',
  'start.ts',
])

/** The places that another runtime would have to replace. */
const bunSeams = [
  'src/base/listen.ts',
  'src/base/http/client-connection.ts',
  'src/base/http/server.ts',
  'src/base/yaml.ts',
  'src/upstream/http/connection.ts',
  'src/store/sqlite.ts',
  'src/artifacts/bucket.ts',
  'src/commands/text-width.ts',
  'src/sandbox/',
]

const linesMax = 400
// The formatter keeps code to this width and leaves comments alone.
const commentWidthMax = 120

/** Everything in these files that breaks the rules of the architecture, each as `file:line what`. */
export function findBreaches(sources: readonly Source[]): string[] {
  return sources.flatMap((source) => {
    const code = blankComments(source.text)
    const tests = isTest(source.path)
    return [
      ...(tests ? [] : foreignImports(source.path, code)),
      ...(tests ? [] : strayBun(source.path, code)),
      ...defaultExports(source.path, code),
      ...tooLong(source),
      ...wideComments(source),
    ]
  })
}

function isTest(path: string): boolean {
  return path.endsWith('.test.ts')
}

function foreignImports(path: string, code: string): string[] {
  return importsOf(code).flatMap(({ specifier, line }) => {
    if (!specifier.startsWith('.')) return []
    const target = normalize(join(dirname(path), specifier))
    const problem = problemWith(path, target)
    return problem === undefined ? [] : [`${path}:${line} ${problem}`]
  })
}

/** Why a file may not use another; undefined if it may. */
function problemWith(path: string, target: string): string | undefined {
  const from = roomOf(path)
  const to = roomOf(target)
  if (composing.has(from)) return undefined
  if (from === to) return undefined
  if (to === outside) return `reaches out of src to ${target}`
  if (from in apart) {
    const allowed: readonly string[] = apart[from as keyof typeof apart]
    return allowed.includes(to) ? undefined : `${from} may use ${allowed.join(', ')} alone, not ${to}`
  }
  if (!isRoom(from)) return `${from} is not a room of the house`
  if (!isRoom(to)) return `${from} may not use ${to}`
  if (neverUses[from]?.includes(to)) return `${from} may not use ${to}`
  if (levels[to] < levels[from] || alsoUses[from]?.includes(to)) return undefined
  return `${from} [${levels[from]}] may not use ${to} [${levels[to]}]`
}

const outside = '(outside)'

/** `store` of `src/store/open.ts`, `gateway.ts` of `src/gateway.ts`. */
function roomOf(path: string): string {
  const [top, room] = path.split('/')
  return top === 'src' && room !== undefined ? room : outside
}

function isRoom(name: string): name is Room {
  return Object.hasOwn(levels, name)
}

function strayBun(path: string, code: string): string[] {
  if (bunSeams.some((seam) => path === seam || (seam.endsWith('/') && path.startsWith(seam)))) return []
  const imports = importsOf(code)
    .filter(({ specifier }) => specifier === 'bun' || specifier.startsWith('bun:'))
    .map(({ specifier, line }) => `${path}:${line} ${specifier} outside of its seams`)
  const globals = [...code.matchAll(/(?<![\w.$])Bun\s*\.\s*\w+/g)].map(
    (match) => `${path}:${lineAt(code, match.index)} ${match[0]} outside of its seams`,
  )
  return [...imports, ...globals]
}

function defaultExports(path: string, code: string): string[] {
  return [...code.matchAll(/^\s*export\s+(?:default\b|\{[^}]*\bas\s+default\b)/gm)].map(
    (match) => `${path}:${lineAt(code, match.index + match[0].search(/\S/))} default export`,
  )
}

export function tooLong({ path, text }: Source): string[] {
  const lines = text.trimEnd().split('\n').length
  return lines > linesMax ? [`${path}:${linesMax} has ${lines} lines, ${linesMax} is the most`] : []
}

export function wideComments({ path, text }: Source): string[] {
  return text.split('\n').flatMap((line, index) => {
    const isWide = line.length > commentWidthMax && /^\s*(?:\/\/|\/?\*)/.test(line)
    return isWide ? [`${path}:${index + 1} a comment of ${line.length} characters, ${commentWidthMax} is the most`] : []
  })
}

const quoted = String.raw`\s*['"]([^'"\n]+)['"]`
const importPatterns = [
  // import a, { type b } from 'x'; import type c from 'x'; export * as d from 'x'
  new RegExp(String.raw`^[^\S\n]*(?:import|export)\s+[\w$*{}\s,]*?\bfrom${quoted}`, 'gm'),
  // import 'x'
  new RegExp(String.raw`^[^\S\n]*import${quoted}`, 'gm'),
  // import('x'), also as a type, and require('x')
  new RegExp(String.raw`\b(?:import|require)\s*\(${quoted}`, 'g'),
  // A worker is named by its URL.
  new RegExp(String.raw`\bnew\s+URL\s*\(${quoted}\s*,\s*import\.meta\.url`, 'g'),
]

export function importsOf(code: string): { specifier: string; line: number }[] {
  const found = importPatterns.flatMap((pattern) =>
    [...code.matchAll(pattern)].map((match) => ({
      specifier: match[1] ?? '',
      // The line of the specifier, not of the word `import`, because a list of imports may be long.
      line: lineAt(code, match.index + match[0].length - 1),
    })),
  )
  return found.toSorted((a, b) => a.line - b.line)
}

/**
 * Blanks comments that begin a line or follow code. This is not a parser: in our style and format, a `//` or `/*`
 * inside a string neither begins a line nor has spaces on both sides.
 */
function blankComments(text: string): string {
  return text
    .replaceAll(/^[^\S\n]*\/\*[\s\S]*?\*\//gm, blank)
    .replaceAll(/^[^\S\n]*\/\/.*$/gm, blank)
    .replaceAll(/ \/\/ .*$/gm, blank)
}

function blank(comment: string): string {
  return comment.replaceAll(/[^\n]/g, ' ')
}

function lineAt(text: string, index: number): number {
  return text.slice(0, index).split('\n').length
}
