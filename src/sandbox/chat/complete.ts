import { noUnits } from '../bill.ts'
import { charge } from '../charge.ts'
import { eventEncoder, streamBody } from '../event-stream.ts'
import { plainAnswer } from '../plain-answer.ts'
import type { Call, World } from '../protocol.ts'
import { answerCall, answerHeaders } from './answer-call.ts'
import { type ChatAsk, readAsk } from './ask.ts'
import { type Composition, compose } from './compose.ts'
import { VendorError } from './errors.ts'
import { frames } from './frames.ts'
import { writeCompletion } from './write.ts'

export function completeChat(call: Call, world: World): Promise<Response> {
  return answerCall(call, world, { notServed, readAsk, compose, answer })
}

function notServed(): VendorError {
  const message = 'This is not a chat model and thus not supported in the v1/chat/completions endpoint.'
  return new VendorError({ status: 404, message, param: 'model' })
}

function answer(call: Call, world: World, ask: ChatAsk, composition: Composition): Response {
  return ask.stream ? answerStreaming(call, world, ask, composition) : answerPlain(call, world, ask, composition)
}

function headersOf(ask: ChatAsk, { id }: Composition, contentType: string): Headers {
  return answerHeaders(ask, id.slice('chatcmpl-'.length), contentType)
}

function answerStreaming(call: Call, world: World, ask: ChatAsk, composition: Composition): Response {
  const headers = headersOf(ask, composition, 'text/event-stream; charset=utf-8')
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
  const text = writeCompletion(ask, composition)
  return plainAnswer({
    text,
    headers: headersOf(ask, composition, 'application/json'),
    steering: ask.steering,
    signal: call.request.signal,
    openAt: text.indexOf('"content":"') + '"content":"'.length,
    settle: (status) => charge(call, world, ask, status, status === 200 ? composition.units : noUnits),
  })
}
