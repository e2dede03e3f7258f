import { noUnits } from '../bill.ts'
import { charge } from '../charge.ts'
import { eventEncoder, streamBody } from '../event-stream.ts'
import { faultAfterDelay, type Refusals } from '../faults.ts'
import { oddHeaders } from '../odd-answers.ts'
import { plainAnswer } from '../plain-answer.ts'
import type { Call, World } from '../protocol.ts'
import { type GeminiAsk, readAsk } from './ask.ts'
import { type Composition, compose } from './compose.ts'
import {
  badKey,
  errorBody,
  errorForCode,
  errorForStatus,
  GoogleError,
  jsonType,
  writeError,
  writeJson,
} from './errors.ts'
import { arrayFrames, frames } from './frames.ts'
import { readKey } from './key.ts'
import { findModel } from './models.ts'
import { readMessage } from './proto.ts'
import { generateContentRequest } from './shapes.ts'
import { writeResponse } from './write.ts'

/** `array` is a stream without `alt=sse`. */
export type Delivery = 'plain' | 'events' | 'array'

/**
 * Answers one call of generateContent or streamGenerateContent and adds its line to the bill, however the call ends.
 */
export async function generateContent(call: Call, world: World, model: string, delivery: Delivery): Promise<Response> {
  const billNothing = (status: number): void => world.bill.add({ ref: call.ref, model, status, units: noUnits })
  let asArray = delivery === 'array'
  try {
    const key = readKey(call.request)
    const method = delivery === 'plain' ? 'generateContent' : 'streamGenerateContent'
    const body = readMessage(call.text, generateContentRequest)
    const ask = readAsk(body, call.text, findModel(call.vendor, world, model, method), delivery !== 'plain')
    asArray ||= delivery === 'events' && ask.steering.has('error-array')

    const fault = await faultAfterDelay(call.request, ask.steering, refusalsFor(key))
    if (fault) {
      billNothing(fault.status)
      return fault
    }
    const composition = compose(ask, world.cache.read([key, model].join('\n'), ask.counted.prompt))
    chargeThenFail(call, world, ask, composition)
    return delivery === 'plain'
      ? answerPlain(call, world, ask, composition)
      : answerStreaming(call, world, ask, composition, delivery)
  } catch (error) {
    if (!(error instanceof GoogleError)) throw error
    // A refusal after the charge already has its line on the bill.
    if (!(error instanceof ChargedError)) billNothing(error.status)
    return writeError(error, asArray)
  }
}

/** `sandbox:charge-then-fail=STATUS`: the answer is charged but never arrives. */
class ChargedError extends GoogleError {}

export function refusalsFor(key: string): Refusals {
  return {
    forCode: errorForCode,
    forStatus: errorForStatus,
    leak: () => badKey(`API key not valid: ${key}. Please pass a valid API key.`),
    body200: () => errorBody(errorForStatus(500)),
  }
}

function answerHeaders(ask: GeminiAsk, contentType: string): Headers {
  const headers = new Headers({
    'content-type': contentType,
    server: 'scaffolding on HTTPServer2',
    'x-content-type-options': 'nosniff',
  })
  if (ask.steering.has('headers')) oddHeaders(headers)
  return headers
}

function answerPlain(call: Call, world: World, ask: GeminiAsk, composition: Composition): Response {
  const text = writeJson(writeResponse(ask, composition))
  return plainAnswer({
    text,
    headers: answerHeaders(ask, jsonType),
    steering: ask.steering,
    signal: call.request.signal,
    openAt: text.indexOf('"text": "') + '"text": "'.length,
    settle: (status) => charge(call, world, ask, status, status === 200 ? composition.units : noUnits),
  })
}

function answerStreaming(
  call: Call,
  world: World,
  ask: GeminiAsk,
  composition: Composition,
  delivery: 'events' | 'array',
): Response {
  const encoder = new TextEncoder()
  const isArray = delivery === 'array'
  const body = streamBody({
    frames: isArray ? arrayFrames(ask, composition) : frames(ask, composition),
    // The vendor's events end in CRLF.
    encode: isArray ? (frame) => encoder.encode(frame.text) : eventEncoder(ask.steering, '\r\n'),
    steering: ask.steering,
    units: composition.units,
    signal: call.request.signal,
    settle: ({ status, units }) => charge(call, world, ask, status, units),
  })
  return new Response(body, { headers: answerHeaders(ask, isArray ? jsonType : 'text/event-stream') })
}

function chargeThenFail(call: Call, world: World, ask: GeminiAsk, composition: Composition): void {
  const status = ask.steering.number('charge-then-fail')
  if (status === undefined) return
  charge(call, world, ask, status, composition.units)
  const { message, code, details } = errorForStatus(status)
  throw new ChargedError({ status, name: code, message, details })
}
