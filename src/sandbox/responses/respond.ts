import { noUnits, type Units } from '../bill.ts'
import { charge } from '../charge.ts'
import { answerCall, answerHeaders } from '../chat/answer-call.ts'
import { VendorError } from '../chat/errors.ts'
import { namedEventEncoder, streamBody } from '../event-stream.ts'
import { plainAnswer } from '../plain-answer.ts'
import type { Call, World } from '../protocol.ts'
import { readAsk, type ResponsesAsk } from './ask.ts'
import { compose, type Composition } from './compose.ts'
import { frames, type Progress } from './frames.ts'
import { writeItem, writeResponse } from './write.ts'

export function answerResponse(call: Call, world: World): Promise<Response> {
  return answerCall(call, world, { notServed, readAsk, compose, answer })
}

function notServed(model: string): VendorError {
  const message = `The requested model '${model}' cannot be used with the Responses API.`
  return new VendorError({ status: 400, message, param: 'model', code: 'unsupported_model' })
}

function answer(call: Call, world: World, ask: ResponsesAsk, composition: Composition): Response {
  return ask.stream ? answerStreaming(call, world, ask, composition) : answerPlain(call, world, ask, composition)
}

function headersOf(ask: ResponsesAsk, { id }: Composition, contentType: string): Headers {
  return answerHeaders(ask, id.slice('resp_'.length), contentType)
}

function answerStreaming(call: Call, world: World, ask: ResponsesAsk, composition: Composition): Response {
  const headers = headersOf(ask, composition, 'text/event-stream; charset=utf-8')
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

/** A stream that ends before the web search does not pay for it. */
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
    headers: headersOf(ask, composition, 'application/json'),
    steering: ask.steering,
    signal: call.request.signal,
    openAt: text.indexOf('"text":"') + '"text":"'.length,
    settle: (code) => charge(call, world, ask, code, code === 200 && !isFailed ? composition.units : noUnits),
  })
}
