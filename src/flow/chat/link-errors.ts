import { badRequest, GatewayError } from '../../base/errors.ts'
import { writeFieldPath } from '../../base/field-path.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { MediaLink } from '../../capabilities/conversation.ts'

export function notMedia(kind: MediaLink['kind']): GatewayError {
  return badRequest(`The URL leads to no ${kind}.`, undefined, 'invalid_url')
}

/** Adds to the refusal of a linked file the field that holds the link. */
export function atLink(thrown: unknown, link: MediaLink, body: JsonObject): unknown {
  if (!(thrown instanceof GatewayError) || thrown.kind !== 'bad-request') return thrown
  const param = pathTo(link, body, []) ?? link.at
  // The path has names in it that the client chose, of any length: `badRequest` shortens them.
  const { message, details } = badRequest(`Invalid '${param}': ${thrown.message}`, param, thrown.details.code)
  return new GatewayError(thrown.kind, message, { ...thrown.details, ...details })
}

const address = /url$/

/** Finds the field of the link: inside its block, with a name that ends in `url`. The same text may stand elsewhere. */
function pathTo(link: MediaLink, value: Json | undefined, path: readonly PropertyKey[]): string | undefined {
  if (value === link.url && address.test(String(path.at(-1)))) {
    const written = writeFieldPath(path)
    if (written.startsWith(`${link.at}.`)) return written
  }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, part] of Object.entries(value)) {
    const found = pathTo(link, part, [...path, Array.isArray(value) ? Number(name) : name])
    if (found !== undefined) return found
  }
  return undefined
}
