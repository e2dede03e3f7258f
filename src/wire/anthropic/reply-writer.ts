import type { JsonObject } from '../../base/json.ts'
import type { ChatAsk, ReplyName, ReplyWriter } from '../../capabilities/chat.ts'
import type { Finish, ReplyEvent } from '../../capabilities/conversation.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { BlockStream, writeEvent } from './block-stream.ts'
import { writeCitation } from './citations.ts'
import { thinkingDisplayFor, writeEnding, writeImageText } from './shown.ts'
import { namesIn } from './tool-names.ts'
import { writeUsage } from './usage.ts'
import { writeHead } from './write-answer.ts'

// A model may think for minutes while nothing is shown: a ping now and then keeps the client's connection open.
const hiddenDeltasPerPing = 50

const encoder = new TextEncoder()
const ping = writeEvent('ping', {})

/** Writes a reply, as it is made, as events of the messages protocol. */
export function openWriter(ask: ChatAsk, name: ReplyName): ReplyWriter {
  const thoughts = thinkingDisplayFor(ask.native)
  const nameOf = namesIn(ask.native)
  const blocks = new BlockStream(thoughts)
  let started = false
  let counted: Usage | undefined
  let finish: Finish | undefined
  let stopSequence: string | undefined
  let isRefused = false
  let hiddenDeltas = 0

  function start(): string {
    if (started) return ''
    started = true
    const message: JsonObject = {
      ...writeHead(ask, name),
      content: [],
      stop_reason: null,
      stop_sequence: null,
      stop_details: null,
      usage: writeUsage(counted ?? {}),
    }
    return writeEvent('message_start', { message }) + ping
  }

  function hide(): string {
    hiddenDeltas++
    return started && hiddenDeltas % hiddenDeltasPerPing === 0 ? ping : ''
  }

  function noteFinish(event: Extract<ReplyEvent, { kind: 'choice-finish' }>): string {
    finish = event.finish
    stopSequence = event.stopSequence
    return blocks.close()
  }

  /** Omitted thinking still shows its signature or its sealed data, which the client sends back. */
  function hides({ kind }: ReplyEvent): boolean {
    if (kind === 'thinking-delta') return thoughts !== 'shown'
    return thoughts === 'none' && (kind === 'thinking-sign' || kind === 'thinking-redact')
  }

  function writeThinking(event: Extract<ReplyEvent, { kind: `thinking-${string}` }>): string {
    if (hides(event)) return blocks.part() + (event.kind === 'thinking-delta' ? hide() : '')
    if (event.kind === 'thinking-delta') return blocks.think(event.text)
    if (event.kind === 'thinking-sign') return blocks.sign(event.signature)
    return blocks.whole({ type: 'redacted_thinking', data: event.data })
  }

  function write(event: ReplyEvent): string {
    switch (event.kind) {
      case 'text-delta':
        return blocks.say(event.text)
      case 'refusal-delta':
        isRefused = true
        return blocks.say(event.text)
      case 'image-add':
        return blocks.say(writeImageText(event.media))
      case 'citation-add':
        return blocks.cite(writeCitation(event.citation))
      case 'thinking-delta':
      case 'thinking-sign':
      case 'thinking-redact':
        return writeThinking(event)
      case 'tool-call-start':
        return blocks.startCall(event.call, { ...event, name: nameOf(event.name) })
      case 'tool-call-delta':
        return blocks.growCall(event.call, event.text)
      case 'choice-finish':
        return noteFinish(event)
      case 'usage-count':
        counted = event.usage
        return ''
      case 'hosted-tool-run':
      case 'heartbeat':
        return started ? ping : ''
      case 'reply-start':
      case 'reply-end':
      case 'failure': // the code that follows the stream writes the error
        return ''
    }
  }

  return {
    write(events) {
      let text = ''
      for (const event of events) {
        if ('choice' in event && event.choice !== 0) continue // the protocol has one choice
        const isSilent = event.kind === 'usage-count' || event.kind === 'heartbeat' || event.kind === 'failure'
        if (!isSilent) text += start()
        text += write(event)
      }
      return text === '' ? undefined : encoder.encode(text)
    },
    hides,
    closing(usage) {
      const ending = start() + blocks.close()
      const ended = writeEnding({ finish, stopSequence, isRefused, hasCalls: blocks.hasCalls })
      const delta = { ...ended, container: null }
      const end = writeEvent('message_delta', { delta, usage: writeUsage(usage ?? counted ?? {}) })
      return encoder.encode(ending + end + writeEvent('message_stop', {}))
    },
  }
}
