import { unreachable } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ChatAsk, ReplyName, ReplyWriter } from '../../capabilities/chat.ts'
import { gap, type Finish, type ReplyEvent } from '../../capabilities/conversation.ts'
import { ChunkStream } from './chunk-stream.ts'
import { HeldLists } from './held-lists.ts'
import { isLegacy } from './legacy-functions.ts'
import { writeFinish, writeImage } from './write-answer.ts'
import { writeCall } from './write-messages.ts'

const encoder = new TextEncoder()
const done = 'data: [DONE]\n\n'

/** Writes a reply as a stream of the common protocol: `role` in the first delta, calls by index, then the finish. */
export function openWriter(ask: ChatAsk, name: ReplyName): ReplyWriter {
  const legacy = isLegacy(ask)
  const chunks = new ChunkStream(ask, name)
  const lists = new HeldLists()
  /** The choices that have made a call. */
  const calling = new Set<number>()
  /** By choice, once it has said something: whether anything else has come since. */
  const interrupted = new Map<number, boolean>()

  /** Gives the same text as a whole answer: text after anything else is a separate text, behind a gap. */
  function parted(event: ReplyEvent): ReplyEvent {
    if (!('choice' in event) || event.kind === 'citation-add') return event
    const isInterrupted = interrupted.get(event.choice)
    if (event.kind !== 'text-delta') {
      if (isInterrupted === false) interrupted.set(event.choice, true)
      return event
    }
    if (isInterrupted !== false) interrupted.set(event.choice, false)
    return isInterrupted === true ? { ...event, text: gap + event.text } : event
  }

  function finish(choice: number, reason: Finish): string {
    const delta = lists.deltaOf(choice)
    const held = delta === undefined ? '' : chunks.add(choice, delta)
    return held + chunks.finish(choice, writeFinish(reason, legacy))
  }

  /** For servers that end a stream and never say why: clients throw on a choice without a finish. */
  function finishRest(): string {
    let text = ''
    for (const choice of chunks.unfinished()) text += finish(choice, calling.has(choice) ? 'tool-calls' : 'stop')
    return text
  }

  function write(event: ReplyEvent): string {
    switch (event.kind) {
      case 'text-delta':
        return chunks.add(event.choice, { content: event.text }, event.logprobs)
      case 'thinking-delta':
        return chunks.add(event.choice, { reasoning_content: event.text })
      case 'thinking-sign':
      case 'thinking-redact':
      case 'citation-add':
        return '' // in the lists that the finish comes with
      case 'refusal-delta':
        return chunks.add(event.choice, { refusal: event.text })
      case 'image-add':
        return event.media.kind === 'bytes' ? chunks.add(event.choice, { images: [writeImage(event.media)] }) : ''
      case 'tool-call-start': {
        calling.add(event.choice)
        if (legacy) return functionCall(event, { name: event.name, arguments: '' })
        const call = { index: event.call, ...writeCall({ ...event, argumentsText: '' }) }
        return chunks.add(event.choice, { tool_calls: [call] })
      }
      case 'tool-call-delta':
        if (legacy) return functionCall(event, { arguments: event.text })
        return chunks.add(event.choice, { tool_calls: [{ index: event.call, function: { arguments: event.text } }] })
      case 'choice-finish':
        return finish(event.choice, event.finish)
      case 'hosted-tool-run': // a search takes seconds, and nothing of it is shown
      case 'heartbeat':
        return chunks.beat()
      // The finish shows a choice's end, usage is written at the end, and the code that ends the stream writes a
      // failure.
      case 'reply-start':
      case 'usage-count':
      case 'reply-end':
      case 'failure':
        return ''
      default:
        return unreachable(event)
    }
  }

  /** The old form has room only for the first call. */
  function functionCall({ choice, call }: { choice: number; call: number }, part: JsonObject): string {
    return call > 0 ? '' : chunks.add(choice, { function_call: part })
  }

  return {
    write(events) {
      let text = ''
      for (const event of events) {
        const shown = parted(event)
        lists.take(shown)
        text += write(shown)
      }
      return text === '' ? undefined : encoder.encode(text)
    },
    closing(usage) {
      const counted = ask.usageShown && usage !== undefined ? chunks.count(usage) : ''
      return encoder.encode(finishRest() + counted + done)
    },
  }
}
