import { bearerOf } from '../bearer.ts'
import { type Fields, isGiven, parseFields, shown } from '../fields.ts'
import type { Call } from '../protocol.ts'
import type { Opened } from '../serve.ts'
import { badRequest, VendorError } from './errors.ts'

export function readKey(request: Request): string {
  const { headers } = request
  // Azure also takes its key in a header of its own.
  const key = bearerOf(headers) ?? headers.get('api-key') ?? undefined
  if (key === undefined) {
    const message =
      "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
    throw new VendorError({ status: 401, message })
  }
  if (key === 'bad-key') {
    const message =
      'Incorrect API key provided: ba***ey. You can find your API key at https://platform.openai.com/account/api-keys.'
    throw new VendorError({ status: 401, message, code: 'invalid_api_key' })
  }
  return key
}

export function readBody(text: string): Fields {
  const body = parseFields(text)
  if (!body) {
    const message =
      'We could not parse the JSON body of your request. (HINT: This likely means you aren’t using your HTTP library correctly.)'
    throw badRequest(message, null)
  }
  if (!isGiven(body.model)) throw badRequest('you must provide a model parameter', null)
  return body
}

/** A call for chat in either of OpenAI's protocols. */
export function openChat({ text }: Call): Opened<Fields> {
  const body = readBody(text)
  return { model: shown(body.model), body }
}
