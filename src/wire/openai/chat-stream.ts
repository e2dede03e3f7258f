import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import { withReplaced, type Bytes } from '../../base/spliced.ts'
import { dataOf, isNamedError } from '../../base/sse.ts'
import type { ChatAsk, ChatStream } from '../../capabilities/chat.ts'
import { recounted, type Usage } from '../../capabilities/usage.ts'
import { unreadableEnd } from '../answer-body.ts'
import { indexOfBytes, modelBytes, valueByteAfter, withModel, wordBytesIn } from '../json-bytes.ts'
import { objectIn, objectsIn, parseLoosely, textIn } from '../loose.ts'
import { RelayFacts } from '../relay-facts.ts'
import { imagesIn } from './chat-answer.ts'
import { failureOf, namedFailure } from './errors.ts'
import { silentAfter } from './silent-delta.ts'
import { readUsage, usageIn } from './usage.ts'
import { UsualEvent, wordKeys } from './usual-event.ts'

const encoder = new TextEncoder()
const doneEvent = encoder.encode('data: [DONE]\n\n')
const comment = encoder.encode(': keep-alive\n\n')

const usageKey = Buffer.from('"usage"')
const errorKey = Buffer.from('"error"')
const finishKey = Buffer.from('"finish_reason"')
const quotedWordKeys = wordKeys.map((key) => Buffer.from(`"${key}"`))
const callsKey = Buffer.from('"tool_calls"')
const emptyText = Buffer.from('""')
const callsList = /"tool_calls"[ \t]*:[ \t]*\[/
// Quotes inside a string are escaped, so these patterns match only keys, each with one comma beside it. They do not
// reach across a line end, behind which there is another `data:`.
const emptyId = /"id"[ \t]*:[ \t]*""/
const repeated = String.raw`"(?:(?:id|name)"[ \t]*:[ \t]*""|type"[ \t]*:[ \t]*"(?:function|custom)")`
const repeatedLater = new RegExp(String.raw`,[ \t]*${repeated}`, 'g')
const repeatedFirst = new RegExp(String.raw`${repeated}[ \t]*,[ \t]*`, 'g')
const anyName = /"name"\s*:\s*"[^"]/
// One for all streams: it is read anew for each event.
const usualEvent = new UsualEvent()
/** Where the JSON begins after `data: `. */
const usualStart = 6
const openBrace = 123
const quote = 34

/**
 * The relay rules of the common protocol, event by event. An event with output passes unparsed unless a cheap look at
 * its bytes shows usage or an error in it: parsing costs more than the rest of the relay together.
 */
export function passStream(ask: ChatAsk): ChatStream {
  return new PassedStream(ask)
}

class PassedStream implements ChatStream {
  readonly facts = new RelayFacts()
  readonly #ask: ChatAsk
  // Copied from the ask, and all of this is one object instead of closures over several: each further object that an
  // event touches has left the core's caches since the last one.
  readonly #choices: number
  readonly #model: Uint8Array
  /** The indexes of the choices that have a finish. */
  readonly #finished: unknown[] = []
  /** The last deltas of choices without a finish, by index, the newest at the end, and as many as were asked for. */
  readonly #going = new Map<Json | undefined, JsonObject>()
  /** Only its id, its time and its deltas are read. */
  #lastChunk: Uint8Array | undefined
  #heldUsage: Uint8Array | undefined

  constructor(ask: ChatAsk) {
    this.#ask = ask
    this.#choices = ask.choices
    this.#model = modelBytes(ask.model)
  }

  takeUsual(bytes: Uint8Array): Bytes | undefined {
    if (this.#choices > 1 || !usualEvent.read(bytes)) return undefined
    const { modelStart, modelEnd, wordBytes } = usualEvent
    this.#lastChunk = bytes
    this.facts.addOutput(wordBytes)
    return withReplaced(bytes, modelStart, modelEnd, this.#model)
  }

  take(event: Uint8Array): Uint8Array | undefined {
    const { facts } = this
    if (isDone(event)) {
      facts.ended = true
      return undefined
    }
    if (isNamedError(event)) {
      facts.failure = namedFailure(dataOf(event))
      return undefined
    }
    const json = event[usualStart] === openBrace ? usualStart : event.indexOf(openBrace)
    if (json === -1) return event // a comment, or something only its sender understands
    const shown = withoutRepetitions(withModel(event, json, this.#model))
    this.#lastChunk = shown
    const error = valueByteAfter(event, errorKey)
    const isError = error === openBrace || error === quote
    const wordBytes = wordBytesIn(event, quotedWordKeys)
    // Events without output are few. They are parsed, because output may have other names, and so may an error.
    const told = isError || wordBytes === 0 ? parseLoosely(dataOf(event)) : undefined
    if (isError && told === undefined) return this.#unreadable()
    facts.failure = isObject(told) ? failureOf(told) : undefined
    if (facts.failure !== undefined) return undefined
    if (!facts.finished && valueByteAfter(event, finishKey) === quote) this.#takeFinish(event)
    // A keep-alive goes on with the last chunk of its choice, which may not be the last of a stream of several.
    if (this.#choices > 1 && !facts.finished) this.#takeDeltas(shown)
    if (wordBytes > 0 || !saysNothing(told)) facts.addOutput(wordBytes)
    if (wordBytes === 0) facts.images += imagesIn(objectIn(told)['choices'], 'delta')
    if (valueByteAfter(event, usageKey) === openBrace) {
      const chunk = parseLoosely(dataOf(shown))
      if (chunk === undefined) return this.#unreadable()
      if (isObject(chunk) && isObject(chunk['usage'])) return this.#takeUsage(shown, chunk)
      if (isObject(chunk) && this.#choices === 1) this.#count(usageIn(chunk))
    }
    return shown
  }

  /**
   * A chunk that goes on with the last one of a choice without a finish, and adds nothing. Not a comment: OpenAI's
   * older clients for Go take the empty line behind one for an event without data, and fail; and without that line it
   * would begin the next event, which clients that skip whole events by their first character, Dify's among them,
   * then lose. A stream without a chunk has begun with the vendor's comment.
   */
  keepAlive(): Uint8Array | undefined {
    if (this.facts.finished) return undefined
    if (this.#lastChunk === undefined) return comment
    const { model, usageShown } = this.#ask
    const { id, created } = this.#takeDeltas(this.#lastChunk)
    const others = Array.from({ length: this.#choices }, (_, i) => i)
    const unbegun = others.find((choice) => !this.#finished.includes(choice))
    const [index = 0, last] = [...this.#going].at(-1) ?? [unbegun, {}]
    const silent = { index, delta: silentAfter(last), logprobs: null, finish_reason: null }
    const chunk = { id, object: 'chat.completion.chunk', created, model, choices: [silent] }
    return encoder.encode(`data: ${JSON.stringify(usageShown ? { ...chunk, usage: null } : chunk)}\n\n`)
  }

  closing(): Uint8Array {
    if (this.#heldUsage === undefined || !this.#ask.usageShown) return doneEvent
    return Buffer.concat([this.#heldUsage, doneEvent])
  }

  /**
   * Takes the usage of an event. An event that also has choices passes on, without its usage unless the client asked
   * for it; one with usage alone is held for the end.
   */
  #takeUsage(event: Uint8Array, chunk: JsonObject): Uint8Array | undefined {
    const counted = readUsage(chunk['usage'])
    const isNews = this.#count(counted)
    const { choices } = chunk
    if (Array.isArray(choices) && choices.length > 0) {
      if (this.#ask.usageShown) return event
      const { usage: _, ...shown } = chunk
      return encoder.encode(`data: ${JSON.stringify({ ...shown, model: this.#ask.model })}\n\n`)
    }
    if (isNews || this.facts.usage === undefined) this.#heldUsage = event
    return undefined
  }

  /** Says whether that is the usage now: some servers end with one that counts nothing. */
  #count(counted: Usage | undefined): boolean {
    if (counted === undefined) return false
    this.facts.usage = recounted(this.facts.usage, counted)
    return this.facts.usage === counted
  }

  #unreadable(): undefined {
    this.facts.failure = unreadableEnd()
    return undefined
  }

  /** Counts the choices that finish in this event. It may hold text as well, and a reason may be empty. */
  #takeFinish(event: Uint8Array): void {
    const { choices } = objectIn(parseLoosely(dataOf(event)))
    for (const { index, finish_reason: reason } of objectsIn(choices)) {
      if (textIn(reason) !== '') this.#finished.push(index)
      this.facts.finished = this.#finished.length >= this.#choices
      if (this.facts.finished) return // of choices that nobody asked for there may be any number
    }
  }

  #takeDeltas(event: Uint8Array): JsonObject {
    const chunk = objectIn(parseLoosely(dataOf(event)))
    for (const { index, delta } of objectsIn(chunk['choices'])) {
      this.#going.delete(index)
      if (!this.#finished.includes(index)) this.#going.set(index, objectIn(delta))
      const [oldest] = this.#going.keys()
      if (this.#going.size > this.#choices) this.#going.delete(oldest)
    }
    return chunk
  }
}

const doneMark = Buffer.from('[DONE]')
const doneEventBytesMax = 64

const commentStart = 58 // a colon

/**
 * Whether this is the protocol's own end of a stream. Its length and a search of its bytes rule out nearly all others;
 * before a late end there may be any number of comments.
 */
export function isDone(event: Uint8Array): boolean {
  if (event.length >= doneEventBytesMax && event[0] !== commentStart) return false
  return indexOfBytes(event, doneMark) !== -1 && dataOf(event).trim() === '[DONE]'
}

/**
 * Some vendors repeat an empty `id` and `name`, and the `type`, with every part of a call, which OpenAI sends only with
 * the first. A client that takes whatever is there would lose the call's id, and one that starts a new call at each
 * `type` would make one of every part. A part that names its function starts a call and stays unchanged.
 */
function withoutRepetitions(event: Uint8Array): Uint8Array {
  const first = indexOfBytes(event, callsKey)
  if (first === -1 || indexOfBytes(event, emptyText, first) === -1) return event
  const text = Buffer.from(event).toString('latin1') // one character per byte, so that all other bytes stay as they are
  const calls = text.search(callsList)
  if (calls === -1) return event
  const part = text.slice(calls)
  if (anyName.test(part) || !emptyId.test(part)) return event
  return Buffer.from(text.slice(0, calls) + part.replace(repeatedLater, '').replace(repeatedFirst, ''), 'latin1')
}

/**
 * Whether an event has no output: a start that names the role, a keep-alive, an end, a count. An unreadable event
 * counts as output, since it went to the client.
 */
function saysNothing(chunk: Json | undefined): boolean {
  if (!isObject(chunk)) return false
  const { choices } = chunk
  if (!Array.isArray(choices)) return true
  return choices.every((choice: Json) => isObject(choice) && isObject(choice['delta']) && isSilent(choice['delta']))
}

function isSilent(delta: JsonObject): boolean {
  return Object.entries(delta).every(([name, value]) => name === 'role' || isEmpty(value))
}

function isEmpty(value: Json | undefined): boolean {
  return !isGiven(value) || value === '' || (Array.isArray(value) && value.length === 0)
}
