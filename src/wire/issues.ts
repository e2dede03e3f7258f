import type { z } from 'zod'
import { writeFieldPath } from '../base/field-path.ts'
import { badRequest, type GatewayError } from '../base/errors.ts'
import { asDouble, type Json } from '../base/json.ts'

type Issue = z.core.$ZodIssue
type Path = readonly PropertyKey[]

/** Says where an object is in the body. Only an error needs words, and long conversations have thousands of objects. */
export type WhereInBody = () => string

/**
 * The first mistake in a body, as a 400 that names the field as the client wrote it. The body is needed to tell a
 * number that kept its own text from an object, since both are objects to the schema.
 */
export function fieldError(error: z.ZodError, body?: unknown): GatewayError {
  const [first] = error.issues
  if (first === undefined) return badRequest('The body is not valid.')
  const { issue, path } = deepest(first, [])
  const fault = issue.code === 'unrecognized_keys' ? [...path, issue.keys[0] ?? ''] : path
  const depth = fault.findIndex((_, length) => keptNumber(body, fault.slice(0, length)) !== undefined)
  if (depth > 0) {
    return invalid(writeFieldPath(fault.slice(0, depth)), 'expected object, received number', 'invalid_type')
  }
  const param = writeFieldPath(fault)
  if (issue.code === 'unrecognized_keys') {
    return badRequest(`Unknown parameter: '${param}'.`, param, 'unknown_parameter')
  }
  if (receivedBy(issue) === 'undefined') return missing(param)
  const number = keptNumber(body, path)
  if (number !== undefined && takesNumbers(issue)) return invalid(param, explainNumber(number))
  const received = number === undefined || !isOfWrongKind(issue) ? receivedBy(issue) : 'number'
  const why = explainSize(issue, valueAt(body, path)) ?? explain(issue, received)
  return invalid(param, why, isOfWrongKind(issue) ? 'invalid_type' : 'invalid_value')
}

export function missing(param: string): GatewayError {
  return badRequest(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter')
}

export function invalid(param: string, why: string, code = 'invalid_value'): GatewayError {
  return badRequest(`Invalid '${param}': ${why}.`, param, code)
}

/** For a field that is not sold or carried out here. `why` is one sentence or several. */
export function notSupported(param: string, why: string): GatewayError {
  return badRequest(`'${param}' is not supported: ${why}`, param, 'unsupported_value')
}

/** For a value that this model does not have. `supported` is a sentence about those that it has. */
export function unsupportedValue(param: string, value: string | number, supported: string): GatewayError {
  const message = `Unsupported value: '${param}' does not support ${value} with this model. ${supported}`
  return badRequest(message, param, 'unsupported_value')
}

/**
 * A union fails with the issues of all its branches. The branch whose issue lies deepest is the one the client meant;
 * among equally deep ones, a branch that takes a value of this type is preferred.
 */
function deepest(issue: Issue, prefix: Path): { issue: Issue; path: Path } {
  const path = [...prefix, ...issue.path]
  let best: { issue: Issue; path: Path } = { issue, path }
  if (issue.code !== 'invalid_union') return best
  for (const [first] of issue.errors) {
    if (first === undefined) continue
    const found = deepest(first, path)
    const isFurther = found.path.length > best.path.length
    const isNearer = found.path.length === best.path.length && best.issue === issue && !isOfWrongKind(found.issue)
    if (isFurther || isNearer) best = found
  }
  return best
}

/** Whether the value has a type that the field does not take, as opposed to a wrong value of the right type. */
function isOfWrongKind(issue: Issue): boolean {
  if (issue.code === 'invalid_type') return true
  // A union error without branches means that a discriminator (`type` or `role`) names none of them.
  if (issue.code === 'invalid_union') return issue.errors.length > 0
  return false
}

function explain(issue: Issue, received: string | undefined): string {
  if (received !== undefined) return `expected ${listed(expectedBy(issue))}, received ${received}`
  if (issue.code === 'invalid_union' && issue.errors.length > 0) return `expected ${listed(expectedBy(issue))}`
  if (issue.code === 'invalid_value') return explainValues(issue.values.map(shown))
  return issue.message
    .replace(/^Invalid (?:input|option): /, '')
    .replace(/^Invalid discriminator value. Expected (.*)$/, (_, values: string) =>
      explainValues(
        values
          .split(' | ')
          .map((value) => value.slice(1, -1))
          .filter((value) => !absent.has(value))
          .map(shown),
      ),
    )
}

type SizeIssue = Extract<Issue, { code: 'too_small' | 'too_big' }>

/** For a value of the right type that is outside of its bounds; undefined for any other issue. */
function explainSize(issue: Issue, value: unknown): string | undefined {
  if (issue.code !== 'too_small' && issue.code !== 'too_big') return undefined
  const bound = Number(issue.code === 'too_small' ? issue.minimum : issue.maximum)
  const counted = countedIn[issue.origin]
  const unit = counted === undefined ? '' : ` ${counted}${bound === 1 ? '' : 's'}`
  const size = sizeOf(value)
  const received = size === undefined ? '' : `, received ${size}`
  return `expected ${boundWords(issue)} ${bound}${unit}${received}`
}

function sizeOf(value: unknown): number | undefined {
  if (typeof value === 'number') return value
  // The schema counts an emoji as one character, where `length` counts it twice.
  if (typeof value === 'string') return codePointsIn(value)
  return Array.isArray(value) ? value.length : undefined
}

/** Counted one by one, because a list of all characters of a body would take many times its memory. */
function codePointsIn(text: string): number {
  let count = 0
  for (const _ of text) count++
  return count
}

/** What the bounds of these kinds count; those of numbers are of the value itself. */
const countedIn: Readonly<Record<string, string>> = { string: 'character', array: 'item' }

function boundWords({ code, inclusive, exact }: SizeIssue): string {
  if (exact === true) return 'exactly'
  if (code === 'too_small') return inclusive === false ? 'more than' : 'at least'
  return inclusive === false ? 'less than' : 'at most'
}

/** A discriminator that may be left out lists these among its values; an error message need not suggest them. */
const absent: ReadonlySet<string> = new Set(['null', 'undefined'])

/** `values` are quoted already. */
export function explainValues(values: readonly string[]): string {
  return values.length === 1 ? `expected ${values[0]}` : `expected one of ${listed(values)}`
}

/** Only strings are quoted, because a quoted number would look like the string that was sent in its place. */
function shown(value: unknown): string {
  return typeof value === 'string' ? `'${value}'` : `the ${typeof value} ${String(value)}`
}

const kinds: Readonly<Record<string, string>> = { int: 'integer', record: 'object' }

/** The types that the field takes, each once, however its schema is composed. */
function expectedBy(issue: Issue): string[] {
  if (issue.code === 'invalid_type') return [kinds[issue.expected] ?? issue.expected]
  if (issue.code === 'invalid_value') return issue.values.map(shown)
  if (issue.code !== 'invalid_union') return []
  return [...new Set(issue.errors.flatMap(([first]) => (first === undefined ? [] : expectedBy(first))))]
}

/** The type of the value, where the type is what is wrong; the library gives it only in the text of its message. */
function receivedBy(issue: Issue): string | undefined {
  if (issue.code === 'invalid_type') return /received (\w+)$/.exec(issue.message)?.[1]
  if (issue.code !== 'invalid_union') return undefined
  for (const [first] of issue.errors) {
    const received = first === undefined ? undefined : receivedBy(first)
    if (received !== undefined) return received
  }
  return undefined
}

/** `'low', 'medium', and 'high'`: OpenAI's own punctuation, which tools match. */
export function listValues(values: readonly string[]): string {
  const quoted = values.map((value) => `'${value}'`)
  if (quoted.length <= 2) return quoted.join(' and ')
  return `${quoted.slice(0, -1).join(', ')}, and ${quoted.at(-1)}`
}

function listed(names: readonly string[]): string {
  return names.length <= 1 ? (names[0] ?? 'something else') : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`
}

/** The number at this path, where it kept its own text because a double cannot hold it: to the schema, an object. */
function keptNumber(body: unknown, path: Path): number | undefined {
  const value = valueAt(body, path)
  if (typeof value !== 'object' || value === null) return undefined
  const double = asDouble(value as Json)
  return typeof double === 'number' ? double : undefined
}

function valueAt(body: unknown, path: Path): unknown {
  let value: unknown = body
  for (const step of path) value = (value as Readonly<Record<PropertyKey, unknown>> | null | undefined)?.[step]
  return value
}

function takesNumbers(issue: Issue): boolean {
  return expectedBy(issue).some((kind) => kind === 'number' || kind === 'integer')
}

function explainNumber(number: number): string {
  const most = Number.MAX_SAFE_INTEGER
  if (number > most) return `too large: at most ${most} is taken`
  if (number < -most) return `too small: at least -${most} is taken`
  return 'it has more digits than a number can hold'
}
