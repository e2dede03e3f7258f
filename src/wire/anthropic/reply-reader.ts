import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { dataOf } from '../../base/sse.ts'
import type { ReplyReader } from '../../capabilities/chat.ts'
import { gap, isCutOff, type ReplyEvent } from '../../capabilities/conversation.ts'
import { unreadableEvent } from '../answer-body.ts'
import { objectIn, parseExactly, textIn } from '../loose.ts'
import { readCitation } from './citations.ts'
import { readFailure } from './errors.ts'
import { hostedWorkOf } from './hosted-work.ts'
import { readFinish, readRefusal } from './read-answer.ts'
import { readCallId } from './tool-ids.ts'
import { mergeUsage, promptCounts, readUsage } from './usage.ts'

/** The state of an open block. `text` is a call's input or the thinking so far. */
type OpenBlock = {
  readonly type: string
  readonly call: number
  readonly input: JsonObject
  text: string
  signature: string
}

const choice = 0

/** Reads a stream of the messages protocol, for clients that speak another. */
export function openReader(): ReplyReader {
  return new MessageReader()
}

class MessageReader implements ReplyReader {
  #isStarted = false
  #counts: JsonObject | undefined
  #calls = 0
  /** A call whose input never came. The input is `{}`, unless the reply was cut off there. */
  #emptyCall: number | undefined
  /** What came last: a text, or a text and then something that is not shown. */
  #last: 'text' | 'left out' | 'other' = 'other'
  readonly #open = new Map<Json | undefined, OpenBlock>()

  read(event: Uint8Array): ReplyEvent[] {
    const data = dataOf(event)
    if (data === '') return [{ kind: 'heartbeat' }]
    // The end in the common protocol, by which some proxies in front of this one end every stream.
    if (data.trim() === '[DONE]') return this.#end()
    const json = parseExactly(data)
    if (!isObject(json)) return [{ kind: 'failure', error: unreadableEvent() }]
    switch (textIn(json['type'])) {
      case 'message_start':
        return this.#start(objectIn(json['message']))
      case 'content_block_start':
        return [...this.#fillCall(), ...this.#startBlock(json['index'], objectIn(json['content_block']), data.length)]
      case 'content_block_delta':
        return this.#growBlock(json['index'], objectIn(json['delta']))
      case 'content_block_stop':
        return this.#stopBlock(json['index'])
      case 'message_delta':
        return this.#finish(json)
      case 'message_stop':
        return this.#end()
      case 'ping':
        return [{ kind: 'heartbeat' }]
      case 'error':
        return [{ kind: 'failure', error: readFailure(objectIn(json['error'])) }]
      default: // some proxies in front of this protocol report an error in the common one, which has no type
        return isObject(json['error']) ? [{ kind: 'failure', error: readFailure(json['error']) }] : []
    }
  }

  #start(message: JsonObject): ReplyEvent[] {
    const counted = this.#countUsage(promptCounts(message['usage']))
    if (this.#isStarted) return counted
    this.#isStarted = true
    return [{ kind: 'reply-start' }, ...counted]
  }

  #startBlock(index: Json | undefined, block: JsonObject, bytes: number): ReplyEvent[] {
    const type = textIn(block['type'])
    const call = type === 'tool_use' ? this.#calls++ : -1
    const input = objectIn(block['input'])
    this.#open.set(index, { type, call, input, text: textIn(block['thinking']), signature: '' })
    switch (type) {
      case 'tool_use':
        this.#last = 'other'
        return [
          { kind: 'tool-call-start', choice, call, id: readCallId(textIn(block['id'])), name: textIn(block['name']) },
        ]
      case 'redacted_thinking':
        this.#last = 'other'
        return [{ kind: 'thinking-redact', choice, data: textIn(block['data']) }]
      case 'text':
        return this.#say(block['text'])
      case 'thinking':
        this.#last = 'other'
        return thought(block['thinking'])
      default: // hosted tools: their results show in the text that follows, and are on the bill now
        if (this.#last === 'text') this.#last = 'left out'
        if (!/tool_use$|_tool_result$/.test(type)) return []
        return [{ kind: 'hosted-tool-run', ...hostedWorkOf(block, bytes) }]
    }
  }

  #growBlock(index: Json | undefined, delta: JsonObject): ReplyEvent[] {
    const block = this.#open.get(index)
    switch (textIn(delta['type'])) {
      case 'text_delta':
        return this.#say(delta['text'])
      case 'thinking_delta':
        if (block !== undefined) block.text += textIn(delta['thinking'])
        return thought(delta['thinking'])
      case 'signature_delta':
        if (block !== undefined) block.signature += textIn(delta['signature'])
        return []
      case 'citations_delta':
        return [{ kind: 'citation-add', choice, citation: readCitation(objectIn(delta['citation'])) }]
      case 'input_json_delta': {
        const text = textIn(delta['partial_json'])
        if (block?.type !== 'tool_use' || text === '') return []
        block.text += text
        return [{ kind: 'tool-call-delta', choice, call: block.call, text }]
      }
      default:
        return []
    }
  }

  /** A signature is complete at the end of its block; an input without deltas is the one the block started with. */
  #stopBlock(index: Json | undefined): ReplyEvent[] {
    const block = this.#open.get(index)
    this.#open.delete(index)
    if (block?.type === 'thinking' && block.signature !== '') {
      return [{ kind: 'thinking-sign', choice, text: block.text, signature: block.signature }]
    }
    if (block?.type !== 'tool_use' || block.text !== '') return []
    const text = JSON.stringify(block.input)
    if (text !== '{}') return [{ kind: 'tool-call-delta', choice, call: block.call, text }]
    this.#emptyCall = block.call
    return []
  }

  #finish(json: JsonObject): ReplyEvent[] {
    const { stop_reason: reason, stop_sequence: sequence, stop_details: details } = objectIn(json['delta'])
    const events: ReplyEvent[] = []
    const refusal = readRefusal(details)
    if (refusal !== '') events.push({ kind: 'refusal-delta', choice, text: refusal })
    if (textIn(reason) !== '') {
      const stopSequence = typeof sequence === 'string' ? { stopSequence: sequence } : {}
      const finish = readFinish(reason, this.#calls > 0)
      const filled = this.#fillCall()
      if (!isCutOff(finish)) events.push(...filled)
      events.push({ kind: 'choice-finish', choice, finish, ...stopSequence })
    }
    return [...events, ...this.#countUsage(isObject(json['usage']) ? json['usage'] : undefined)]
  }

  #end(): ReplyEvent[] {
    return [...this.#fillCall(), { kind: 'reply-end' }]
  }

  #say(value: Json | undefined): ReplyEvent[] {
    const text = textIn(value)
    if (text === '') return []
    const before = this.#last === 'left out' ? gap : ''
    this.#last = 'text'
    return [{ kind: 'text-delta', choice, text: before + text }]
  }

  #fillCall(): ReplyEvent[] {
    const call = this.#emptyCall
    this.#emptyCall = undefined
    return call === undefined ? [] : [{ kind: 'tool-call-delta', choice, call, text: '{}' }]
  }

  #countUsage(usage: JsonObject | undefined): ReplyEvent[] {
    this.#counts = mergeUsage(this.#counts, usage)
    const read = readUsage(this.#counts)
    return usage === undefined || read === undefined ? [] : [{ kind: 'usage-count', usage: read }]
  }
}

function thought(value: Json | undefined): ReplyEvent[] {
  const text = textIn(value)
  return text === '' ? [] : [{ kind: 'thinking-delta', choice, text }]
}
