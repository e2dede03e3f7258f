import { GatewayError } from '../../base/errors.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import { dataOf } from '../../base/sse.ts'
import type { ChatStream, StreamFacts } from '../../capabilities/chat.ts'
import type { ImageTokens, PictureAsk } from '../../capabilities/images.ts'
import { findTopLevelString } from '../json-bytes.ts'
import { parseLoosely } from '../loose.ts'
import { readFailure } from './chat-answer.ts'
import { eventPrefix, readTokens } from './images-answer.ts'

const typeKey = Buffer.from('type')
const openBrace = 123
const doneMark = '[DONE]'
const doneEventBytesMax = 64

/**
 * A stream of pictures on its way from a vendor of this protocol: previews go on as they come, megabytes that nobody has
 * to parse. The last picture is the end: it waits until it is paid for, and has the usage.
 */
export function passStream(ask: PictureAsk): ChatStream {
  const completedType = `${eventPrefix(ask)}.completed`
  let tokens: ImageTokens | undefined
  let failure: GatewayError | undefined
  let ended = false
  let completed = 0
  let held: Uint8Array | undefined
  let outputEvents = 0
  let outputBytes = 0

  const facts: StreamFacts = {
    get usage() {
      return tokens
    },
    get finished() {
      return completed >= ask.count
    },
    get ended() {
      return ended || completed >= ask.count
    },
    get failure() {
      return failure
    },
    get outputEvents() {
      return outputEvents
    },
    get outputBytes() {
      return outputBytes
    },
  }

  function takeCompleted(event: Uint8Array): Uint8Array | undefined {
    const json = parseLoosely(dataOf(event))
    if (!isObject(json)) {
      failure = new GatewayError('upstream-failed', "The model's vendor ended its stream with something unreadable.")
      return undefined
    }
    completed++
    tokens = sumOf(tokens, readTokens(json['usage']))
    if (completed < ask.count) return event
    held = event
    return undefined
  }

  return {
    facts,
    take(event) {
      const json = event.indexOf(openBrace)
      if (json === -1) {
        if (event.length >= doneEventBytesMax || dataOf(event).trim() !== doneMark) return event
        ended = true
        return undefined
      }
      const type = typeOf(event, json)
      if (type === 'error' || type === '') {
        failure = failureIn(event)
        if (failure !== undefined) return undefined
      }
      outputEvents++
      outputBytes += event.length
      return type === completedType ? takeCompleted(event) : event
    },
    closing: () => held ?? new Uint8Array(),
  }
}

function typeOf(event: Uint8Array, json: number): string {
  const span = findTopLevelString(event, json, typeKey)
  return span === undefined ? '' : Buffer.from(event.subarray(span.start, span.end)).toString()
}

function failureIn(event: Uint8Array): GatewayError | undefined {
  const json = parseLoosely(dataOf(event))
  const error: JsonObject | undefined = isObject(json) && isObject(json['error']) ? json['error'] : undefined
  if (error !== undefined) return readFailure(error)
  return isObject(json) && json['type'] === 'error' ? readFailure(json) : undefined
}

/** Each picture of several may have its own usage. */
function sumOf(sofar: ImageTokens | undefined, more: ImageTokens | undefined): ImageTokens | undefined {
  if (sofar === undefined || more === undefined) return more ?? sofar
  return {
    input: sofar.input + more.input,
    cachedInput: (sofar.cachedInput ?? 0) + (more.cachedInput ?? 0),
    imageInput: sofar.imageInput + more.imageInput,
    output: sofar.output + more.output,
    imageOutput: sofar.imageOutput + more.imageOutput,
  }
}
