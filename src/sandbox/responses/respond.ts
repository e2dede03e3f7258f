import { noUnits, type Units } from '../bill.ts'
import { charge } from '../charge.ts'
import { readBody, readKey } from '../chat/complete.ts'
import { errorForStatus, modelNotFound, VendorError, writeError } from '../chat/errors.ts'
import { refusalsFor } from '../chat/faults.ts'
import { namedEventEncoder, streamBody } from '../event-stream.ts'
import { faultAfterDelay } from '../faults.ts'
import { textIn } from '../fields.ts'
import { isSoldFor } from '../model.ts'
import { oddHeaders } from '../odd-answers.ts'
import { plainAnswer } from '../plain-answer.ts'
import type { Call, World } from '../protocol.ts'
import { readAsk, type ResponsesAsk } from './ask.ts'
import { compose, type Composition } from './compose.ts'
import { frames, type Progress } from './frames.ts'
import { writeItem, writeResponse } from './write.ts'

/** Answers one call for a response and writes its line on the bill, whatever becomes of it. */
export async function answerResponse(call: Call, world: World): Promise<Response> {
  let model = ''
  const billNothing = (status: number): void => world.bill.add({ ref: call.ref, model, status, units: noUnits })
  try {
    const key = readKey(call.request)
    const body = readBody(call.text)
    model = String(body.model)
    const known = world.models.get(call.vendor)?.get(model)
    if (!known) throw modelNotFound(model)
    if (!isSoldFor(known, 'chat')) {
      const message = `The requested model '${model}' cannot be used with the Responses API.`
      throw new VendorError({ status: 400, message, param: 'model', code: 'unsupported_model' })
    }
    const ask = readAsk(body, call.text, known)
    const fault = await faultAfterDelay(call.request, ask.steering, refusalsFor(key))
    if (fault) {
      billNothing(fault.status)
      return fault
    }
    const owner = [key, model, textIn(body.prompt_cache_key)].join('\n')
    const composition = compose(ask, world.cache.read(owner, ask.prompt))
    chargeThenFail(call, world, ask, composition)
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

function answerHeaders(ask: ResponsesAsk, { id }: Composition, contentType: string): Headers {
  const headers = new Headers({
    'content-type': contentType,
    'x-request-id': `req_${id.slice('resp_'.length)}`,
    'openai-version': '2020-10-01',
  })
  if (ask.steering.has('headers')) oddHeaders(headers)
  return headers
}

function answerStreaming(call: Call, world: World, ask: ResponsesAsk, composition: Composition): Response {
  const headers = answerHeaders(ask, composition, 'text/event-stream; charset=utf-8')
  headers.set('cache-control', 'no-cache')
  const progress: Progress = { hasSearched: false }
  const body = streamBody({
    frames: frames(ask, composition, progress),
    encode: namedEventEncoder(ask.steering),
    steering: ask.steering,
    units: composition.units,
    signal: call.request.signal,
    settle: ({ status, units }) => charge(call, world, ask, status, sent(units, progress)),
  })
  return new Response(body, { headers })
}

/** A stream that breaks off before the search does not cost it. */
function sent(units: Units, { hasSearched }: Progress): Units {
  if (units === noUnits || hasSearched) return units
  const { webSearches: _, ...rest } = units
  return rest
}

function answerPlain(call: Call, world: World, ask: ResponsesAsk, composition: Composition): Response {
  const isFailed = ask.steering.text('finish') === 'failed'
  const status = isFailed ? 'failed' : composition.cutBy === undefined ? 'completed' : 'incomplete'
  const output = isFailed ? [] : composition.items.map((item) => writeItem(ask, item))
  const text = JSON.stringify(writeResponse(ask, composition, { status, output }))
  return plainAnswer({
    text,
    headers: answerHeaders(ask, composition, 'application/json'),
    steering: ask.steering,
    signal: call.request.signal,
    openAt: text.indexOf('"text":"') + '"text":"'.length,
    settle: (code) => charge(call, world, ask, code, code === 200 && !isFailed ? composition.units : noUnits),
  })
}

function chargeThenFail(call: Call, world: World, ask: ResponsesAsk, composition: Composition): void {
  const status = ask.steering.number('charge-then-fail')
  if (status === undefined) return
  charge(call, world, ask, status, composition.units)
  const { message, type, code } = errorForStatus(status)
  throw new ChargedError({ status, message, type, code })
}
