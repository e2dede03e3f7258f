import type { z } from 'zod'
import { GatewayError } from '../base/errors.ts'
import type { JsonLimits } from '../base/json.ts'
import { readJsonBody } from '../edge/read-body.ts'
import type { Visit } from '../edge/route.ts'
import type { Actor } from '../store/audit.ts'
import { parseBy } from '../wire/check.ts'

/** One call of an operator whose key has been checked and whose body has not. */
export type Call = {
  readonly visit: Visit
  readonly actor: Actor
  /** The `{id}` of the path. It has the form of an id, and need not exist. */
  readonly id: string
}

// No body of an operator is long: a few patterns, a note, some metadata.
const bodyBytesMax = 64 * 1024
const limits: JsonLimits = { depthMax: 8, keysMax: 1_000 }

/** The body parsed by its schema, and its canonical bytes, by which two calls are told apart. */
export async function readCall<T>(
  { visit }: Call,
  schema: z.ZodType<T>,
): Promise<{ body: T; canonicalBytes: Uint8Array }> {
  const { body, canonicalBytes } = await readJsonBody(visit.request, bodyBytesMax, limits)
  return { body: parseBy(schema, body), canonicalBytes }
}

export function absent(what: 'account' | 'key' | 'request' | 'task' | 'webhook'): GatewayError {
  return new GatewayError('not-found', `There is no such ${what}.`, { code: `${what}_not_found` })
}
