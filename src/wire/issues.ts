import type { z } from 'zod'
import { writeFieldPath } from '../base/field-path.ts'
import { badRequest, type GatewayError } from '../base/errors.ts'

type Issue = z.core.$ZodIssue
type Path = readonly PropertyKey[]

/** The first thing wrong with a body, as a 400 that names the field where the client wrote it. */
export function fieldError(error: z.ZodError): GatewayError {
  const [first] = error.issues
  if (first === undefined) return badRequest('The body is not valid.')
  const { issue, path } = deepest(first, [])
  if (issue.code === 'unrecognized_keys') {
    const unknown = writeFieldPath([...path, issue.keys[0] ?? ''])
    return badRequest(`Unknown parameter: '${unknown}'.`, unknown, 'unknown_parameter')
  }
  const param = writeFieldPath(path)
  const missing = issue.code === 'invalid_type' && issue.message.endsWith('received undefined')
  if (missing) return badRequest(`Missing required parameter: '${param}'.`, param, 'missing_required_parameter')
  const code = issue.code === 'invalid_type' || isNoBranch(issue) ? 'invalid_type' : 'invalid_value'
  return badRequest(`Invalid '${param}': ${explain(issue)}.`, param, code)
}

/** A union fails with the complaints of all its branches; the one that got furthest is about what the client meant. */
function deepest(issue: Issue, prefix: Path): { issue: Issue; path: Path } {
  const path = [...prefix, ...issue.path]
  let best: { issue: Issue; path: Path } = { issue, path }
  if (issue.code !== 'invalid_union') return best
  for (const [first] of issue.errors) {
    if (first === undefined) continue
    const found = deepest(first, path)
    if (found.path.length > best.path.length) best = found
  }
  return best
}

/** A value that fits no branch of a union. One whose `type` or `role` names no branch has the right kind, not the right value. */
function isNoBranch(issue: Issue): boolean {
  return issue.code === 'invalid_union' && issue.errors.length > 0
}

function explain(issue: Issue): string {
  if (issue.code !== 'invalid_union' || issue.errors.length === 0) {
    return issue.message
      .replace(/^Invalid (?:input|option): /, '')
      .replace(/^Too /, 'too ')
      .replace(/^Invalid discriminator value. Expected /, 'expected one of ')
  }
  return issue.errors.map(([first]) => (first === undefined ? 'something else' : explain(first))).join(', or ')
}
