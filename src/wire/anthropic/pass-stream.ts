import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { dataOf } from '../../base/sse.ts'
import type { ChatAsk, ChatStream } from '../../capabilities/chat.ts'
import { unreadableEnd } from '../answer-body.ts'
import { findTopLevelString, indexOfBytes, modelBytes, valueByteAfter, withModel, wordBytesIn } from '../json-bytes.ts'
import { objectIn, parseLoosely, textIn } from '../loose.ts'
import { RelayFacts } from '../relay-facts.ts'
import { writeEvent } from './block-stream.ts'
import { readFailure } from './errors.ts'
import { hostedWorkOf } from './hosted-work.ts'
import { mergeUsage, promptCounts, readUsage } from './usage.ts'

const encoder = new TextEncoder()
const usualEnd = encoder.encode('event: message_stop\ndata: {"type":"message_stop"}\n\n')
const ping = encoder.encode(writeEvent('ping', {}))

const typeKey = Buffer.from('type')
const messageKey = Buffer.from('"message"')
const errorKey = Buffer.from('"error"')
const nameMark = Buffer.from('event:')
/**
 * The keys under which a block or a delta holds output: text, thinking, tool input, tool names, and sealed thinking,
 * whose length is not visible anywhere else.
 */
const wordKeys = ['text', 'thinking', 'partial_json', 'name', 'signature', 'data'].map((key) => Buffer.from(`"${key}"`))
const openBrace = 123

/**
 * The relay rules of the messages protocol, event by event. An event names its type near its start, so a delta, as
 * nearly all events are, passes on without being parsed.
 */
export function passStream(ask: ChatAsk): ChatStream {
  const model = modelBytes(ask.model)
  const facts = new RelayFacts()
  let counts: JsonObject | undefined
  let end: Uint8Array | undefined
  let started = false

  function count(usage: Json | undefined): void {
    counts = mergeUsage(counts, usage)
    facts.usage = readUsage(counts)
  }

  /** Some servers send `message_start` twice, which makes the official clients throw; only the first passes on. */
  function takeStart(event: Uint8Array): Uint8Array | undefined {
    const { usage } = objectIn(objectIn(parseLoosely(dataOf(event)))['message'])
    count(promptCounts(usage))
    if (started) return undefined
    started = true
    if (valueByteAfter(event, messageKey) !== openBrace) return event
    const message = event.indexOf(openBrace, indexOfBytes(event, messageKey))
    return withModel(event, message, model)
  }

  /** A block that starts empty is no output yet. */
  function takeBlock(event: Uint8Array): void {
    const block = objectIn(objectIn(parseLoosely(dataOf(event)))['content_block'])
    const type = textIn(block['type'])
    const { searches, foundBytes } = hostedWorkOf(block, event.length)
    const { hosted } = facts
    facts.hosted = { searches: hosted.searches + searches, foundBytes: hosted.foundBytes + foundBytes }
    const isEmpty = (type === 'text' || type === 'thinking') && textIn(block[type]) === ''
    // What a search found was not written by the model.
    if (!isEmpty && !type.endsWith('_tool_result')) facts.addOutput(wordBytesIn(event, wordKeys))
  }

  function takeDelta(event: Uint8Array): Uint8Array | undefined {
    const json = parseLoosely(dataOf(event))
    if (!isObject(json)) return unreadable()
    count(json['usage'])
    if (textIn(objectIn(json['delta'])['stop_reason']) !== '') facts.finished = true
    return event
  }

  function takeError(event: Uint8Array): undefined {
    const json = parseLoosely(dataOf(event))
    if (!isObject(json)) return unreadable()
    facts.failure = readFailure(objectIn(json['error']))
  }

  function unreadable(): undefined {
    facts.failure = unreadableEnd()
  }

  function forward(event: Uint8Array, type: string): Uint8Array | undefined {
    switch (type) {
      case 'content_block_delta':
        facts.addOutput(wordBytesIn(event, wordKeys))
        return event
      case 'message_start':
        return takeStart(event)
      case 'content_block_start':
        takeBlock(event)
        return event
      case 'message_delta':
        return takeDelta(event)
      case 'error':
        return takeError(event)
      case '': // some proxies in front of this protocol report an error in the common one, which has no type
        return valueByteAfter(event, errorKey) === openBrace ? takeError(event) : event
      case 'message_stop':
        end = event
        facts.ended = true
        return undefined
      default: // a ping, or an event that only the client understands
        return event
    }
  }

  return {
    facts,
    take(event) {
      const json = event.indexOf(openBrace)
      if (json === -1) return event // a comment
      const type = typeOf(event, json)
      return forward(hasName(event, json) ? event : withName(event, type), type)
    },
    keepAlive: () => ping,
    closing: () => end ?? usualEnd,
  }
}

const { latin1Slice } = Buffer.prototype

/** The type in the event's data or, where the data has none, the event's name. */
function typeOf(event: Uint8Array, json: number): string {
  const span = findTopLevelString(event, json, typeKey)
  if (span !== undefined) return latin1Slice.call(event, span.start, span.end)
  return /^event: ?([a-z_]+)/m.exec(latin1Slice.call(event, 0, json))?.[1] ?? ''
}

function hasName(event: Uint8Array, json: number): boolean {
  const at = indexOfBytes(event, nameMark)
  if (at === -1 || at > json) return false
  return at === 0 || event[at - 1] === 10 || event[at - 1] === 13
}

/** The vendor's own clients ignore an event without a name, and some servers of this protocol send none. */
function withName(event: Uint8Array, type: string): Uint8Array {
  return type === '' ? event : Buffer.concat([encoder.encode(`event: ${type}\n`), event])
}
