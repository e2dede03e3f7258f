import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import { dataOf } from '../../base/sse.ts'
import type { ReplyReader } from '../../capabilities/chat.ts'
import { gap, isCutOff, type ReplyEvent } from '../../capabilities/conversation.ts'
import { unreadableEvent } from '../answer-body.ts'
import { objectIn, parseLoosely, textIn } from '../loose.ts'
import { readFailure } from './errors.ts'
import { readCitation, readFinish, sealIn, reasoningTextIn } from './read-answer.ts'
import { isSearch, readUsage } from './usage.ts'

const choice = 0
/** After these events the vendor may still refuse the request, so they do not start the reply. */
const beginnings: ReadonlySet<string> = new Set(['response.queued', 'response.created', 'response.in_progress'])

/** Reads a stream of this protocol, for clients that speak another. */
export function openReader(): ReplyReader {
  return new ResponseReader()
}

class ResponseReader implements ReplyReader {
  #isStarted = false
  /**
   * The names of items, by id and by place in the output: some relays give an item another id in every event, or none.
   */
  readonly #names = new Map<Json | undefined, string>()
  /** Calls in the order in which they began, by the name of their item, each with the arguments so far. */
  readonly #calls = new Map<string, { readonly call: number; text: string }>()
  /** The current reasoning so far. */
  #thought = ''
  /** The message item that the text just before is from: text of another item is a separate text. */
  #speaker: string | undefined

  read(event: Uint8Array): ReplyEvent[] {
    const data = dataOf(event)
    if (data === '') return [{ kind: 'heartbeat' }]
    const json = parseLoosely(data)
    if (!isObject(json)) return data.trim() === '[DONE]' ? [] : [{ kind: 'failure', error: unreadableEvent() }]
    const type = textIn(json['type'])
    if (beginnings.has(type)) return []
    // Not documented; OpenAI sends it while a model is busy, also before the first item.
    if (type === 'keepalive') return this.#isStarted ? [{ kind: 'heartbeat' }] : []
    const events = this.#readEvent(type, json)
    // Text after anything else is separated by those who write it.
    if (events.some(standsBetween)) this.#speaker = undefined
    return events[0]?.kind === 'failure' ? events : [...this.#start(), ...events]
  }

  #readEvent(type: string, event: JsonObject): ReplyEvent[] {
    const place = event['output_index']
    const item = this.#nameOf(textIn(event['item_id']), place)
    const delta = textIn(event['delta'])
    switch (type) {
      case 'response.output_text.delta':
        return this.#say(item, delta)
      case 'response.function_call_arguments.delta':
        return this.#growCall(item, delta)
      case 'response.function_call_arguments.done':
        return this.#completeCall(item, textIn(event['arguments']))
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_text.delta':
        return this.#think(delta)
      case 'response.reasoning_summary_part.added':
        return this.#think(this.#thought === '' ? '' : gap)
      case 'response.refusal.delta':
        return delta === '' ? [] : [{ kind: 'refusal-delta', choice, text: delta }]
      case 'response.output_text.annotation.added':
        return readCitation(objectIn(event['annotation'])).map((citation) => ({
          kind: 'citation-add',
          choice,
          citation,
        }))
      case 'response.output_item.added':
        return this.#beginItem(objectIn(event['item']), place)
      case 'response.output_item.done':
        return this.#endItem(objectIn(event['item']), place)
      case 'response.completed':
      case 'response.incomplete':
        return this.#finish(objectIn(event['response']))
      case 'response.failed': {
        const response = objectIn(event['response'])
        return [failure(objectIn(response['error'])), ...countUsage(response)]
      }
      case 'error': // the error is the event itself, or at some servers an object inside it
        return [failure(isObject(event['error']) ? event['error'] : event)]
      default:
        return []
    }
  }

  #start(): ReplyEvent[] {
    if (this.#isStarted) return []
    this.#isStarted = true
    return [{ kind: 'reply-start' }]
  }

  #beginItem({ type, id, call_id: callId, name }: JsonObject, place: Json | undefined): ReplyEvent[] {
    const item = textIn(id) || (isGiven(place) ? `at ${JSON.stringify(place)}` : '')
    for (const key of [id, place]) if (isGiven(key) && key !== '') this.#names.set(key, item)
    if (type === 'reasoning') this.#thought = ''
    if (type !== 'function_call') return []
    const call = this.#calls.size
    this.#calls.set(item, { call, text: '' })
    return [{ kind: 'tool-call-start', choice, call, id: textIn(callId), name: textIn(name) }]
  }

  #endItem(item: JsonObject, place: Json | undefined): ReplyEvent[] {
    const { type, id, arguments: text } = item
    if (isSearch(item)) return [{ kind: 'hosted-tool-run', searches: 1, foundBytes: 0 }]
    if (type === 'function_call') return this.#completeCall(this.#nameOf(textIn(id), place), textIn(text))
    if (type !== 'reasoning') return []
    const events = this.#thought === '' ? this.#think(reasoningTextIn(item)) : []
    const signature = sealIn(item)
    if (signature === undefined) return events
    return [...events, { kind: 'thinking-sign', choice, text: this.#thought, signature }]
  }

  #finish(response: JsonObject): ReplyEvent[] {
    const finish = readFinish(response, this.#calls.size > 0)
    // A call without arguments gets an empty object; one that was cut off does not.
    const isWhole = !isCutOff(finish)
    const filled = isWhole ? [...this.#calls.keys()].flatMap((item) => this.#completeCall(item, '{}')) : []
    return [...filled, { kind: 'choice-finish', choice, finish }, ...countUsage(response), { kind: 'reply-end' }]
  }

  #say(item: string, text: string): ReplyEvent[] {
    if (text === '') return []
    const before = this.#speaker === undefined || this.#speaker === item ? '' : gap
    this.#speaker = item
    return [{ kind: 'text-delta', choice, text: before + text }]
  }

  #think(text: string): ReplyEvent[] {
    this.#thought += text
    return text === '' ? [] : [{ kind: 'thinking-delta', choice, text }]
  }

  #growCall(item: string, text: string): ReplyEvent[] {
    const call = this.#calls.get(item)
    if (call === undefined || text === '') return []
    call.text += text
    return [{ kind: 'tool-call-delta', choice, call: call.call, text }]
  }

  /** Some servers send the arguments whole, without any delta before. */
  #completeCall(item: string, text: string): ReplyEvent[] {
    return this.#calls.get(item)?.text === '' ? this.#growCall(item, text) : []
  }

  #nameOf(id: string, place: Json | undefined): string {
    return this.#names.get(id) ?? this.#names.get(place) ?? id
  }
}

function standsBetween(event: ReplyEvent): boolean {
  return 'choice' in event && event.kind !== 'text-delta' && event.kind !== 'citation-add'
}

function countUsage(response: JsonObject): ReplyEvent[] {
  const usage = readUsage(response)
  return usage === undefined ? [] : [{ kind: 'usage-count', usage }]
}

function failure(error: JsonObject): ReplyEvent {
  return { kind: 'failure', error: readFailure(error) }
}
