import { noUnits, type Units } from '../bill.ts'
import { charge } from '../charge.ts'
import { namedEventEncoder, streamBody } from '../event-stream.ts'
import { faultAfterDelay } from '../faults.ts'
import { type Fields, isFields } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import { oddHeaders } from '../odd-answers.ts'
import { plainAnswer } from '../plain-answer.ts'
import type { Call, World } from '../protocol.ts'
import { type MessagesAsk, readAsk } from './ask.ts'
import { type Composition, compose } from './compose.ts'
import { errorBody, errorForCode, errorForStatus, invalid, MessagesError, modelNotFound, writeError } from './errors.ts'
import { frames, type Progress } from './frames.ts'
import { type Head, readHead } from './head.ts'
import { textAt } from './shape.ts'
import { writeMessage } from './write.ts'

/** Answers one call for a message and adds its line to the bill, however the call ends. */
export async function answerMessage(call: Call, world: World): Promise<Response> {
  let model = ''
  const billNothing = (status: number): void => world.bill.add({ ref: call.ref, model, status, units: noUnits })
  try {
    const head = readHead(call.request.headers)
    const body = readBody(call.text)
    model = textAt('model', body.model)
    const ask = readAsk(body, call.text, findModel(world, call.vendor, model), head, 'answer')
    const fault = await misbehave(call, ask, head)
    if (fault) {
      billNothing(fault.status)
      return fault
    }
    const composition = compose(ask, world.markedCache.use(`${head.key}\n${model}`, ask.marks))
    chargeThenFail(call, world, ask, composition)
    return ask.stream ? answerStreaming(call, world, ask, composition) : answerPlain(call, world, ask, composition)
  } catch (error) {
    if (!(error instanceof MessagesError)) throw error
    // A refusal after the charge already has its line on the bill.
    if (!(error instanceof ChargedError)) billNothing(error.status)
    return writeError(error, call.text)
  }
}

/** Counts a prompt. Counting is free, so it adds no line to the bill. */
export async function countTokens(call: Call, world: World): Promise<Response> {
  try {
    const head = readHead(call.request.headers)
    const body = readBody(call.text)
    const model = findModel(world, call.vendor, textAt('model', body.model))
    const ask = readAsk(body, call.text, model, head, 'count')
    const fault = await misbehave(call, ask, head)
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

/** `sandbox:charge-then-fail=STATUS`: the answer is charged but never arrives. */
class ChargedError extends MessagesError {}

// The vendor's limit on the body of this path.
const bodyBytesMax = 32 * 1024 * 1024

function readBody(text: string): Fields {
  if (text.length > bodyBytesMax || Buffer.byteLength(text) > bodyBytesMax) throw errorForStatus(413)
  let body: unknown
  try {
    body = JSON.parse(text)
  } catch {
    throw invalid('', 'The request body is not valid JSON.')
  }
  if (!isFields(body)) throw invalid('', 'Input should be a valid dictionary')
  return body
}

function misbehave(call: Call, { steering }: MessagesAsk, { key }: Head): Promise<Response | undefined> {
  return faultAfterDelay(call.request, steering, {
    forCode: errorForCode,
    forStatus: errorForStatus,
    leak: () => new MessagesError({ status: 401, message: `invalid x-api-key: ${key}` }),
    body200: () => errorBody(new MessagesError({ status: 500, message: 'Something went wrong.' })),
  })
}

function requestId({ seed }: MessagesAsk): string {
  return `req_011${(seed >>> 0).toString(36).padStart(8, '0')}`
}

function answerHeaders(ask: MessagesAsk, contentType: string): Headers {
  const headers = new Headers({
    'content-type': contentType,
    'request-id': requestId(ask),
    'anthropic-organization-id': 'sandbox-organization',
    'anthropic-ratelimit-requests-limit': '4000',
    'anthropic-ratelimit-requests-remaining': '3999',
    // Other vendors give a duration here, Anthropic a point in time.
    'anthropic-ratelimit-requests-reset': new Date().toISOString(),
  })
  if (ask.steering.has('headers')) oddHeaders(headers)
  return headers
}

function answerStreaming(call: Call, world: World, ask: MessagesAsk, composition: Composition): Response {
  const headers = answerHeaders(ask, 'text/event-stream; charset=utf-8')
  headers.set('cache-control', 'no-cache')
  const progress: Progress = { hasSearched: false }
  const body = streamBody({
    frames: frames(ask, composition, progress),
    encode: namedEventEncoder(ask.steering),
    steering: ask.steering,
    units: composition.units,
    signal: call.request.signal,
    settle: ({ status, units }) => charge(call, world, ask, status, sent(units, composition, progress)),
  })
  return new Response(body, { headers })
}

/** A stream that ends before the web search costs neither the search nor the tokens of its results. */
function sent(units: Units, { promptUnits }: Composition, { hasSearched }: Progress): Units {
  if (units === noUnits || hasSearched) return units
  return { ...promptUnits, output: units.output, reasoning: units.reasoning }
}

function answerPlain(call: Call, world: World, ask: MessagesAsk, composition: Composition): Response {
  const text = writeMessage(ask, composition)
  return plainAnswer({
    text,
    headers: answerHeaders(ask, 'application/json'),
    steering: ask.steering,
    signal: call.request.signal,
    openAt: text.indexOf('"text":"') + '"text":"'.length,
    settle: (status) => charge(call, world, ask, status, status === 200 ? composition.units : noUnits),
  })
}

function chargeThenFail(call: Call, world: World, ask: MessagesAsk, composition: Composition): void {
  const status = ask.steering.number('charge-then-fail')
  if (status === undefined) return
  charge(call, world, ask, status, composition.units)
  throw new ChargedError({ status, message: errorForStatus(status).message })
}
