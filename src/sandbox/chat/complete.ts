import { noUnits } from '../bill.ts'
import { charge } from '../charge.ts'
import { eventEncoder, streamBody } from '../event-stream.ts'
import { faultAfterDelay } from '../faults.ts'
import { type Fields, isGiven, parseFields } from '../fields.ts'
import { isSoldFor } from '../model.ts'
import { oddHeaders } from '../odd-answers.ts'
import { plainAnswer } from '../plain-answer.ts'
import type { Call, World } from '../protocol.ts'
import { type ChatAsk, readAsk } from './ask.ts'
import { type Composition, compose } from './compose.ts'
import { badRequest, errorForStatus, modelNotFound, VendorError, writeError } from './errors.ts'
import { refusalsFor } from './faults.ts'
import { frames } from './frames.ts'
import { writeCompletion } from './write.ts'

/** Answers one chat call and writes its line on the bill, whatever becomes of it. */
export async function completeChat(call: Call, world: World): Promise<Response> {
  let model = ''
  const billNothing = (status: number): void => world.bill.add({ ref: call.ref, model, status, units: noUnits })
  try {
    const key = readKey(call.request)
    const body = readBody(call.text)
    model = String(body.model)
    const known = world.models.get(call.vendor)?.get(model)
    if (!known) throw modelNotFound(model)
    if (!isSoldFor(known, 'chat')) {
      const message = 'This is not a chat model and thus not supported in the v1/chat/completions endpoint.'
      throw new VendorError({ status: 404, message, param: 'model' })
    }
    const ask = readAsk(body, call.text, known)

    const fault = await faultAfterDelay(call.request, ask.steering, refusalsFor(key))
    if (fault) {
      billNothing(fault.status)
      return fault
    }
    const owner = [key, ask.model.model, ask.promptCacheKey].join('\n')
    const composition = compose(ask, world.cache.read(owner, ask.prompt))
    return ask.stream ? answerStreaming(call, world, ask, composition) : answerPlain(call, world, ask, composition)
  } catch (error) {
    if (!(error instanceof VendorError)) throw error
    // A refusal after the vendor charged has its line already.
    if (!(error instanceof ChargedError)) billNothing(error.status)
    return writeError(call.vendor, error, call.text)
  }
}

/** `sandbox:charge-then-fail=STATUS`: the answer was made and charged, but never arrives. */
class ChargedError extends VendorError {}

export function readKey(request: Request): string {
  const { headers } = request
  // Azure's key may have a header of its own.
  const key = /^Bearer +(\S.*)$/i.exec(headers.get('authorization') ?? '')?.[1] ?? headers.get('api-key') ?? undefined
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

function answerHeaders(ask: ChatAsk, composition: Composition, contentType: string): Headers {
  const headers = new Headers({
    'content-type': contentType,
    'x-request-id': `req_${composition.id.slice('chatcmpl-'.length)}`,
    'openai-version': '2020-10-01',
  })
  if (ask.steering.has('headers')) oddHeaders(headers)
  return headers
}

function answerStreaming(call: Call, world: World, ask: ChatAsk, composition: Composition): Response {
  chargeThenFail(call, world, ask, composition)
  const headers = answerHeaders(ask, composition, 'text/event-stream; charset=utf-8')
  headers.set('cache-control', 'no-cache')
  const body = streamBody({
    frames: frames(ask, composition),
    encode: eventEncoder(ask.steering),
    steering: ask.steering,
    units: composition.units,
    signal: call.request.signal,
    settle: ({ status, units }) => charge(call, world, ask, status, units),
  })
  return new Response(body, { headers })
}

function answerPlain(call: Call, world: World, ask: ChatAsk, composition: Composition): Response {
  chargeThenFail(call, world, ask, composition)
  const text = writeCompletion(ask, composition)
  return plainAnswer({
    text,
    headers: answerHeaders(ask, composition, 'application/json'),
    steering: ask.steering,
    signal: call.request.signal,
    openAt: text.indexOf('"content":"') + '"content":"'.length,
    settle: (status) => charge(call, world, ask, status, status === 200 ? composition.units : noUnits),
  })
}

function chargeThenFail(call: Call, world: World, ask: ChatAsk, composition: Composition): void {
  const status = ask.steering.number('charge-then-fail')
  if (status === undefined) return
  charge(call, world, ask, status, composition.units)
  const { message, type, code } = errorForStatus(status)
  throw new ChargedError({ status, message, type, code })
}
