import { noUnits, type Units } from '../bill.ts'
import { namedEventEncoder } from '../event-stream.ts'
import { faultAfterDelay, type Refusals } from '../faults.ts'
import { type Fields, isFields, parsedOr } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import type { Call, World } from '../protocol.ts'
import type { Answer, Endpoint } from '../serve.ts'
import { type MessagesAsk, readAsk } from './ask.ts'
import { type Composition, compose } from './compose.ts'
import { errorBody, errorForCode, errorForStatus, invalid, MessagesError, modelNotFound, writeError } from './errors.ts'
import { frames, type Progress } from './frames.ts'
import { type Head, readHead } from './head.ts'
import { textAt } from './shape.ts'
import { writeMessage } from './write.ts'

/** A request with the facts of its headers. */
type Received = { readonly fields: Fields; readonly head: Head }

/** `POST /messages`. */
export const messages: Endpoint<Received, MessagesAsk, MessagesError> = {
  dialect: {
    readKey: ({ headers }) => readHead(headers).key,
    isRefusal: (error) => error instanceof MessagesError,
    writeRefusal: ({ text }, refusal) => writeError(refusal, text),
    unknownModel: modelNotFound,
    wrongModel: modelNotFound,
    refusalsFor,
  },
  capabilities: ['chat'],
  open({ request, text }) {
    const fields = readBody(text)
    return { model: textAt('model', fields.model), body: { fields, head: readHead(request.headers) } }
  },
  read: ({ fields, head }, model, { text }) => readAsk({ body: fields, text, head }, model, 'answer'),
  make(ask, _, { key, world }) {
    const composition = compose(ask, world.markedCache.use(`${key}\n${ask.model.model}`, ask.marks))
    return ask.stream ? makeStream(ask, composition) : makeWhole(ask, composition)
  },
}

/** Counts a prompt. Counting is free, so it adds no line to the bill. */
export async function countTokens(call: Call, world: World): Promise<Response> {
  try {
    const head = readHead(call.request.headers)
    const body = readBody(call.text)
    const model = findModel(world, call.vendor, textAt('model', body.model))
    const ask = readAsk({ body, text: call.text, head }, model, 'count')
    const fault = await faultAfterDelay(call.request, ask.steering, refusalsFor(head.key))
    const headers = { 'request-id': requestId(ask) }
    return fault ?? Response.json({ input_tokens: ask.promptTokens }, { headers })
  } catch (error) {
    if (error instanceof MessagesError) return writeError(error, call.text)
    throw error
  }
}

export function findModel(world: World, vendor: string, model: string): SandboxModel {
  const known = world.models.get(vendor)?.get(model)
  if (!known) throw modelNotFound(model)
  return known
}

// The vendor's limit on the body of this path.
const bodyBytesMax = 32 * 1024 * 1024

function readBody(text: string): Fields {
  if (text.length > bodyBytesMax || Buffer.byteLength(text) > bodyBytesMax) throw errorForStatus(413)
  const body = parsedOr(text, undefined)
  if (body === undefined) throw invalid('', 'The request body is not valid JSON.')
  if (!isFields(body)) throw invalid('', 'Input should be a valid dictionary')
  return body
}

function refusalsFor(key: string): Refusals {
  return {
    forCode: errorForCode,
    forStatus: errorForStatus,
    leak: () => new MessagesError({ status: 401, message: `invalid x-api-key: ${key}` }),
    body200: () => errorBody(new MessagesError({ status: 500, message: 'Something went wrong.' })),
  }
}

function requestId({ seed }: MessagesAsk): string {
  return `req_011${(seed >>> 0).toString(36).padStart(8, '0')}`
}

function headersOf(ask: MessagesAsk, contentType = 'application/json'): Record<string, string> {
  return {
    'content-type': contentType,
    'request-id': requestId(ask),
    'anthropic-organization-id': 'sandbox-organization',
    'anthropic-ratelimit-requests-limit': '4000',
    'anthropic-ratelimit-requests-remaining': '3999',
    // Other vendors give a duration here, Anthropic a point in time.
    'anthropic-ratelimit-requests-reset': new Date().toISOString(),
  }
}

function makeStream(ask: MessagesAsk, composition: Composition): Answer {
  const progress: Progress = { hasSearched: false }
  return {
    units: composition.units,
    headers: { ...headersOf(ask, 'text/event-stream; charset=utf-8'), 'cache-control': 'no-cache' },
    body: {
      kind: 'frames',
      frames: frames(ask, composition, progress),
      encode: namedEventEncoder(ask.steering),
      charged: (sent) => withoutSearches(sent, composition, progress),
    },
  }
}

/** A stream that ends before the web search costs neither the search nor the tokens of its results. */
function withoutSearches(units: Units, { promptUnits }: Composition, { hasSearched }: Progress): Units {
  if (units === noUnits || hasSearched) return units
  return { ...promptUnits, output: units.output, reasoning: units.reasoning }
}

function makeWhole(ask: MessagesAsk, composition: Composition): Answer {
  const text = writeMessage(ask, composition)
  return { units: composition.units, headers: headersOf(ask), body: { kind: 'whole', text, openAfter: '"text":"' } }
}
