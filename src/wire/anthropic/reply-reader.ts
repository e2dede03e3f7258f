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
  let started = false
  let counts: JsonObject | undefined
  let calls = 0
  /** A call whose input never came. The input is `{}`, unless the reply was cut off there. */
  let emptyCall: number | undefined
  /** What came last: a text, or a text and then something that is not shown. */
  let last: 'text' | 'left out' | 'other' = 'other'
  const open = new Map<Json | undefined, OpenBlock>()

  function countUsage(usage: JsonObject | undefined): ReplyEvent[] {
    counts = mergeUsage(counts, usage)
    const read = readUsage(counts)
    return usage === undefined || read === undefined ? [] : [{ kind: 'usage-count', usage: read }]
  }

  function readStart(message: JsonObject): ReplyEvent[] {
    const counted = countUsage(promptCounts(message['usage']))
    if (started) return counted
    started = true
    return [{ kind: 'reply-start' }, ...counted]
  }

  function readBlock(index: Json | undefined, block: JsonObject, bytes: number): ReplyEvent[] {
    return [...fillCall(), ...readBegun(index, block, bytes)]
  }

  function fillCall(): ReplyEvent[] {
    const call = emptyCall
    emptyCall = undefined
    return call === undefined ? [] : [{ kind: 'tool-call-delta', choice, call, text: '{}' }]
  }

  function readBegun(index: Json | undefined, block: JsonObject, bytes: number): ReplyEvent[] {
    const type = textIn(block['type'])
    const call = type === 'tool_use' ? calls++ : -1
    open.set(index, { type, call, input: objectIn(block['input']), text: textIn(block['thinking']), signature: '' })
    switch (type) {
      case 'tool_use':
        last = 'other'
        return [
          { kind: 'tool-call-start', choice, call, id: readCallId(textIn(block['id'])), name: textIn(block['name']) },
        ]
      case 'redacted_thinking':
        last = 'other'
        return [{ kind: 'thinking-redact', choice, data: textIn(block['data']) }]
      case 'text':
        return said(block['text'])
      case 'thinking':
        last = 'other'
        return thought(block['thinking'])
      default: // hosted tools: their results show in the text that follows, and are on the bill now
        if (last === 'text') last = 'left out'
        if (!/tool_use$|_tool_result$/.test(type)) return []
        return [{ kind: 'hosted-tool-run', ...hostedWorkOf(block, bytes) }]
    }
  }

  function said(value: Json | undefined): ReplyEvent[] {
    const text = textIn(value)
    if (text === '') return []
    const before = last === 'left out' ? gap : ''
    last = 'text'
    return [{ kind: 'text-delta', choice, text: before + text }]
  }

  function readDelta(index: Json | undefined, delta: JsonObject): ReplyEvent[] {
    const block = open.get(index)
    switch (textIn(delta['type'])) {
      case 'text_delta':
        return said(delta['text'])
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
  function readStop(index: Json | undefined): ReplyEvent[] {
    const block = open.get(index)
    open.delete(index)
    if (block?.type === 'thinking' && block.signature !== '') {
      return [{ kind: 'thinking-sign', choice, text: block.text, signature: block.signature }]
    }
    if (block?.type !== 'tool_use' || block.text !== '') return []
    const text = JSON.stringify(block.input)
    if (text !== '{}') return [{ kind: 'tool-call-delta', choice, call: block.call, text }]
    emptyCall = block.call
    return []
  }

  function readEnd(json: JsonObject): ReplyEvent[] {
    const { stop_reason: reason, stop_sequence: sequence, stop_details: details } = objectIn(json['delta'])
    const events: ReplyEvent[] = []
    const refusal = readRefusal(details)
    if (refusal !== '') events.push({ kind: 'refusal-delta', choice, text: refusal })
    if (textIn(reason) !== '') {
      const stopSequence = typeof sequence === 'string' ? { stopSequence: sequence } : {}
      const finish = readFinish(reason, calls > 0)
      const filled = fillCall()
      if (!isCutOff(finish)) events.push(...filled)
      events.push({ kind: 'choice-finish', choice, finish, ...stopSequence })
    }
    return [...events, ...countUsage(isObject(json['usage']) ? json['usage'] : undefined)]
  }

  return {
    read(event) {
      const data = dataOf(event)
      if (data === '') return [{ kind: 'heartbeat' }]
      // The end in the common protocol, by which some proxies in front of this one end every stream.
      if (data.trim() === '[DONE]') return [...fillCall(), { kind: 'reply-end' }]
      const json = parseExactly(data)
      if (!isObject(json)) return [{ kind: 'failure', error: unreadableEvent() }]
      switch (textIn(json['type'])) {
        case 'message_start':
          return readStart(objectIn(json['message']))
        case 'content_block_start':
          return readBlock(json['index'], objectIn(json['content_block']), data.length)
        case 'content_block_delta':
          return readDelta(json['index'], objectIn(json['delta']))
        case 'content_block_stop':
          return readStop(json['index'])
        case 'message_delta':
          return readEnd(json)
        case 'message_stop':
          return [...fillCall(), { kind: 'reply-end' }]
        case 'ping':
          return [{ kind: 'heartbeat' }]
        case 'error':
          return [{ kind: 'failure', error: readFailure(objectIn(json['error'])) }]
        default: // some proxies in front of this protocol report an error in the common one, which has no type
          return isObject(json['error']) ? [{ kind: 'failure', error: readFailure(json['error']) }] : []
      }
    },
  }
}

function thought(value: Json | undefined): ReplyEvent[] {
  const text = textIn(value)
  return text === '' ? [] : [{ kind: 'thinking-delta', choice, text }]
}
