import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { dataOf } from '../../base/sse.ts'
import type { ChatAsk, ChatStream } from '../../capabilities/chat.ts'
import { unreadableEvent } from '../answer-body.ts'
import { findTopLevelString, wordBytesIn } from '../json-bytes.ts'
import { objectIn, parseLoosely } from '../loose.ts'
import { RelayFacts } from '../relay-facts.ts'
import { commonError, readFailure, responseError } from './errors.ts'
import { asAsked } from './pass-answer.ts'
import { heartbeat } from './reply-writer.ts'
import { isSearch, readUsage } from './usage.ts'

const encoder = new TextEncoder()
const heartbeatBytes = encoder.encode(heartbeat)
const typeKey = Buffer.from('type')
const wordKeys = [Buffer.from('"delta"')]
const openBrace = 123
const { latin1Slice } = Buffer.prototype

/**
 * The relay rules of this protocol, event by event. Nearly all events are deltas, which name their type at their start
 * and pass on without being parsed; events that repeat the request are rewritten with the client's values.
 */
export function passStream(ask: ChatAsk): ChatStream {
  const facts = new RelayFacts()
  let begun: JsonObject = {}
  let end: Uint8Array | undefined
  let shownEvents = 0

  /** An event that holds the response. An unreadable one gives undefined and a failure, because it must not pass on. */
  function readResponse(event: Uint8Array): JsonObject | undefined {
    const json = parseLoosely(dataOf(event))
    if (isObject(json) && isObject(json['response'])) return json
    facts.failure = unreadableEvent()
    return undefined
  }

  function takeBeginning(event: Uint8Array, type: string): Uint8Array | undefined {
    const json = readResponse(event)
    if (json === undefined) return undefined
    begun = asAsked(objectIn(json['response']), ask)
    return write(type, { ...json, response: begun })
  }

  function takeEnd(event: Uint8Array, type: string): undefined {
    const json = readResponse(event)
    if (json === undefined) return
    const response = objectIn(json['response'])
    facts.usage = readUsage(response)
    facts.finished = true
    facts.ended = true
    end = write(type, { ...json, response: asAsked(response, ask) })
  }

  function takeFailure(event: Uint8Array): undefined {
    const json = objectIn(parseLoosely(dataOf(event)))
    const response = objectIn(json['response'])
    facts.usage = readUsage(response)
    facts.failure = readFailure([response['error'], json['error']].find(isObject) ?? json)
  }

  /** Hosted tool calls are on the vendor's bill, whatever happens to the rest of the stream. */
  function takeItem(event: Uint8Array): void {
    const item = objectIn(objectIn(parseLoosely(dataOf(event)))['item'])
    const { hosted } = facts
    if (isSearch(item)) facts.hosted = { ...hosted, searches: hosted.searches + 1 }
  }

  function forward(event: Uint8Array, type: string): Uint8Array | undefined {
    switch (type) {
      case 'response.created':
      case 'response.in_progress':
      case 'response.queued':
        return takeBeginning(event, type)
      case 'response.completed':
      case 'response.incomplete':
        return takeEnd(event, type)
      case 'response.failed':
      case 'error':
        return takeFailure(event)
      case 'response.output_item.done':
        takeItem(event)
        return event
      default:
        if (type.endsWith('.delta')) facts.addOutput(wordBytesIn(event, wordKeys))
        return event
    }
  }

  return {
    facts,
    take(event) {
      const json = event.indexOf(openBrace)
      if (json === -1) return event // a comment
      const span = findTopLevelString(event, json, typeKey)
      const shown = forward(event, span === undefined ? '' : latin1Slice.call(event, span.start, span.end))
      if (shown !== undefined) shownEvents++
      return shown
    },
    keepAlive: () => heartbeatBytes,
    closing: () => end ?? new Uint8Array(),
    failing(error) {
      const type = 'response.failed'
      const response = { ...begun, status: 'failed', error: responseError(error) }
      return write(type, { type, sequence_number: shownEvents, response, error: commonError(error) })
    },
  }
}

function write(type: string, event: Readonly<Record<string, Json | undefined>>): Uint8Array {
  return encoder.encode(`event: ${type}\ndata: ${JSON.stringify(event)}\n\n`)
}
