import type { GatewayError } from '../../base/errors.ts'
import { isObject } from '../../base/json.ts'
import { dataOf } from '../../base/sse.ts'
import type { StreamFacts } from '../../capabilities/chat.ts'
import type { ImageTokens, Looks, ImageAskBase, ImageStream } from '../../capabilities/images.ts'
import { unreadableEnd } from '../answer-body.ts'
import { findTopLevelString } from '../json-bytes.ts'
import { objectIn, parseLoosely, textIn } from '../loose.ts'
import { isDone } from './chat-stream.ts'
import { failureIn, readFailure } from './errors.ts'
import { eventPrefix, readTokens } from './images-answer.ts'

const [typeKey, sizeKey, qualityKey] = [Buffer.from('type'), Buffer.from('size'), Buffer.from('quality')]
const imageKey = Buffer.from('b64_json')
const openBrace = 123

/**
 * Relays a stream of images from a vendor of this protocol. Previews, which are megabytes, pass on unparsed. The last
 * image is the end of the stream: it carries the usage, and is held until the settlement is recorded.
 */
export function passStream(ask: ImageAskBase): ImageStream {
  const completedType = `${eventPrefix(ask)}.completed`
  const previewType = `${eventPrefix(ask)}.partial_image`
  let tokens: ImageTokens | undefined
  let failure: GatewayError | undefined
  let ended = false
  let completed = 0
  let previews = 0
  let looks: Looks | undefined
  let held: Uint8Array | undefined
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
      return completed + previews
    },
    get outputBytes() {
      return outputBytes
    },
    get images() {
      return completed
    },
  }

  function takeCompleted(event: Uint8Array): Uint8Array | undefined {
    const json = parseLoosely(dataOf(event))
    if (!isObject(json)) {
      failure = unreadableEnd()
      return undefined
    }
    completed++
    outputBytes += event.length
    looks = { size: textIn(json['size']), quality: textIn(json['quality']) }
    tokens = sumOf(tokens, readTokens(json['usage']))
    if (completed < ask.count) return event
    held = event
    return undefined
  }

  function takePreview(event: Uint8Array, json: number): Uint8Array {
    previews++
    outputBytes += event.length
    // All images of a stream have the same size and quality, and finding these walks over megabytes.
    looks ??= { size: textOf(event, json, sizeKey), quality: textOf(event, json, qualityKey) }
    return event
  }

  return {
    facts,
    get shown() {
      return { images: completed, previews, looks: looks ?? {} }
    },
    take(event) {
      const json = event.indexOf(openBrace)
      if (json === -1) {
        if (!isDone(event)) return event
        ended = true
        return undefined
      }
      const type = textOf(event, json, typeKey)
      if (type === 'error' || type === '') {
        failure = failureOf(event)
        if (failure !== undefined) return undefined
      }
      if (type === completedType) return takeCompleted(event)
      // Servers have names of their own for previews, but not every event that only its sender understands is one.
      const isPreview = type === previewType || findTopLevelString(event, json, imageKey) !== undefined
      return isPreview ? takePreview(event, json) : event
    },
    closing: () => held ?? new Uint8Array(),
  }
}

function textOf(event: Uint8Array, json: number, key: Buffer): string {
  const span = findTopLevelString(event, json, key)
  return span === undefined ? '' : Buffer.from(event.subarray(span.start, span.end)).toString()
}

function failureOf(event: Uint8Array): GatewayError | undefined {
  const json = objectIn(parseLoosely(dataOf(event)))
  return failureIn(json) ?? (json['type'] === 'error' ? readFailure(json) : undefined)
}

/** Each of several images may carry its own usage. */
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
