import { unreachable } from '../../base/errors.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import type { ChatAsk, ReplyName, ReplyWriter } from '../../capabilities/chat.ts'
import { gap, type ReplyEvent } from '../../capabilities/conversation.ts'
import { HeldLists } from './held-lists.ts'
import { isLegacy } from './legacy-functions.ts'
import { writeUsage } from './usage.ts'
import { writeFinish, writeHead, writeImage } from './write-answer.ts'
import { writeCall } from './write-messages.ts'

const encoder = new TextEncoder()
const heartbeat = ': waiting\n\n'
const done = 'data: [DONE]\n\n'

/** Writes a reply as a stream of the common protocol: `role` in the first delta, calls by index, then the finish. */
export function openWriter(ask: ChatAsk, name: ReplyName): ReplyWriter {
  const legacy = isLegacy(ask)
  const head = JSON.stringify(writeHead(ask, name, 'chat.completion.chunk')).slice(0, -1)
  const begun = new Set<number>()
  /** The first choice has begun with a sign of life, and has nothing else yet. */
  let isOnlyAlive = false
  // Where usage was asked for, every chunk except the last has a null usage.
  const tail = ask.usageShown ? ',"usage":null}\n\n' : '}\n\n'

  function chunkOf(choice: number, delta: JsonObject, logprobs: Json = null, finish: string | null = null): string {
    const written = JSON.stringify({ index: choice, delta, logprobs, finish_reason: finish })
    return `data: ${head},"choices":[${written}]${tail}`
  }

  /**
   * The first chunks of the choices that have none. A choice without output needs one with an empty content, because the
   * chunk with its finish has an empty delta. The others need theirs by then too: OpenAI's client for Java ends an answer
   * as soon as all the choices it has seen are finished, and throws on what comes later.
   */
  function beginBefore(finished: number): string {
    let text = isOnlyAlive ? chunk(0, { content: '' }) : ''
    for (let choice = 0; choice < Math.max(ask.choices, finished + 1); choice++) {
      if (!begun.has(choice)) text += chunkOf(choice, { role: 'assistant', content: '' })
      begun.add(choice)
    }
    return text
  }

  function chunk(choice: number, delta: JsonObject, logprobs: Json = null, finish: string | null = null): string {
    if (finish !== null) return beginBefore(choice) + chunkOf(choice, {}, null, finish)
    const isFirst = !begun.has(choice)
    begun.add(choice)
    if (choice === 0) isOnlyAlive = false
    return chunkOf(choice, isFirst ? { role: 'assistant', ...delta } : delta, logprobs)
  }

  /**
   * Anthropic's streams begin with a sign of life. As a comment it would be in every one of them, and go-openai cannot
   * read the error of a stream that had a comment.
   */
  function beginAlive(): string {
    const text = chunk(0, {})
    isOnlyAlive = true
    return text
  }

  /** The choices that have given their finish, and those that have made a call. */
  const finished = new Set<number>()
  const calling = new Set<number>()

  function note(event: ReplyEvent): void {
    if (event.kind === 'choice-finish') finished.add(event.choice)
    if (event.kind === 'tool-call-start') calling.add(event.choice)
  }

  /** For servers that end a stream and never say why: clients throw on a choice without a finish. */
  function finishRest(): string {
    let text = ''
    // The first finish may begin further choices, which are then visited too.
    for (const choice of begun) {
      if (finished.has(choice)) continue
      const finish = calling.has(choice) ? 'tool-calls' : 'stop'
      text += writeEvent({ kind: 'choice-finish', choice, finish }, lists, chunk, legacy)
    }
    return text
  }

  // By choice, once it has said something: whether anything else has come since.
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

  const lists = new HeldLists()

  return {
    write(events) {
      let text = ''
      for (const event of events) {
        const shown = parted(event)
        lists.take(shown)
        note(shown)
        const isFirstSign = shown.kind === 'heartbeat' && begun.size === 0
        text += isFirstSign ? beginAlive() : writeEvent(shown, lists, chunk, legacy)
      }
      return text === '' ? undefined : encoder.encode(text)
    },
    closing(usage) {
      const shown = ask.usageShown && usage !== undefined
      const counted = shown ? `data: ${head},"choices":[],"usage":${JSON.stringify(writeUsage(usage))}}\n\n` : ''
      return encoder.encode(finishRest() + counted + done)
    },
  }
}

type WriteChunk = (choice: number, delta: JsonObject, logprobs?: Json, finish?: string | null) => string

function writeEvent(event: ReplyEvent, lists: HeldLists, chunk: WriteChunk, legacy: boolean): string {
  switch (event.kind) {
    case 'text-delta':
      return chunk(event.choice, { content: event.text }, event.logprobs)
    case 'thinking-delta':
      return chunk(event.choice, { reasoning_content: event.text })
    case 'thinking-sign':
    case 'thinking-redact':
    case 'citation-add':
      return '' // in the lists that the finish comes with
    case 'refusal-delta':
      return chunk(event.choice, { refusal: event.text })
    case 'image-add':
      return event.media.kind === 'bytes' ? chunk(event.choice, { images: [writeImage(event.media)] }) : ''
    case 'tool-call-start':
      if (legacy)
        return event.call > 0 ? '' : chunk(event.choice, { function_call: { name: event.name, arguments: '' } })
      return chunk(event.choice, { tool_calls: [{ index: event.call, ...writeCall({ ...event, argumentsText: '' }) }] })
    case 'tool-call-delta':
      if (legacy) return event.call > 0 ? '' : chunk(event.choice, { function_call: { arguments: event.text } })
      return chunk(event.choice, { tool_calls: [{ index: event.call, function: { arguments: event.text } }] })
    case 'choice-finish': {
      const delta = lists.deltaOf(event.choice)
      const held = delta === undefined ? '' : chunk(event.choice, delta)
      return held + chunk(event.choice, {}, null, writeFinish(event.finish, legacy))
    }
    case 'hosted-tool-run': // a search takes seconds, and nothing of it is shown
    case 'heartbeat':
      return heartbeat
    // The finish shows a choice's end, usage is written at the end, and the code that ends the stream writes a failure.
    case 'reply-start':
    case 'usage-count':
    case 'reply-end':
    case 'failure':
      return ''
    default:
      return unreachable(event)
  }
}
