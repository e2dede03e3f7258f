import { GatewayError } from '../../base/errors.ts'
import type { Json } from '../../base/json.ts'
import { dataOf } from '../../base/sse.ts'
import { decodeUtf8 } from '../../base/utf8.ts'
import type { ReplyReader } from '../../capabilities/chat.ts'
import type { AssistantBlock, Choice, Finish, Reply, ReplyEvent } from '../../capabilities/conversation.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { noAnswer, unreadableEvent } from '../answer-body.ts'
import { parseExactly } from '../loose.ts'
import { joinLogprobs } from './read-logprobs.ts'
import { openResponses, responsesIn } from './read-response.ts'

/** Reads a whole answer. A vendor may send an error or an HTML page with status 200, so an answer needs a candidate. */
export function readAnswer(body: Uint8Array): Reply {
  const json = parseExactly(decodeUtf8(body))
  const responses = responsesIn(json)
  if (responses.length === 0) throw noAnswer()
  return collect(responses.flatMap(openResponses()))
}

/**
 * Reads a stream of whole responses, each of which holds what is new. The protocol has no end event: once the candidate
 * has a finish reason the end of the connection is the end, and before that it is a cut. So `reply-end` is never
 * emitted.
 */
export function openReader(): ReplyReader {
  const read = openResponses()
  return {
    read(event) {
      const data = dataOf(event)
      if (data.trim() === '') return [{ kind: 'heartbeat' }]
      const json = parseExactly(data)
      if (json === undefined) return [{ kind: 'failure', error: unreadableEvent() }]
      const events = responsesIn(json).flatMap(read)
      return events.length === 0 ? [{ kind: 'heartbeat' }] : events
    },
  }
}

/** One candidate, collected from its events. */
type Draft = { blocks: AssistantBlock[]; finish: Finish | undefined; logprobs: Json[] }

function collect(events: readonly ReplyEvent[]): Reply {
  const drafts = new Map<number, Draft>()
  let usage: Usage | undefined
  for (const event of events) {
    if (event.kind === 'failure') throw event.error
    if (event.kind === 'usage-count') ({ usage } = event)
    else if ('choice' in event) {
      const draft = drafts.get(event.choice) ?? { blocks: [], finish: undefined, logprobs: [] }
      drafts.set(event.choice, draft)
      add(draft, event)
    }
  }
  if (drafts.size === 0) {
    throw new GatewayError('upstream-failed', "The model's vendor sent an answer without candidates.")
  }
  const inOrder = [...drafts].toSorted(([a], [b]) => a - b)
  return { choices: inOrder.map(([, draft]) => choiceOf(draft)), usage }
}

function choiceOf({ blocks, finish, logprobs }: Draft): Choice {
  const joined = joinLogprobs(logprobs)
  // A whole answer is complete even where the vendor gives no finish reason.
  const reason = finish ?? (blocks.some(({ kind }) => kind === 'tool-call') ? 'tool-calls' : 'stop')
  return { blocks, finish: reason, ...(joined !== undefined && { logprobs: joined }) }
}

function add(draft: Draft, event: Extract<ReplyEvent, { readonly choice: number }>): void {
  const { blocks } = draft
  const last = blocks.at(-1)
  switch (event.kind) {
    case 'text-delta':
      if (last?.kind === 'text') blocks[blocks.length - 1] = { ...last, text: last.text + event.text }
      else blocks.push({ kind: 'text', text: event.text })
      if (event.logprobs !== undefined) draft.logprobs.push(event.logprobs)
      return
    case 'thinking-delta':
      if (last?.kind === 'thinking') blocks[blocks.length - 1] = { ...last, text: last.text + event.text }
      else blocks.push({ kind: 'thinking', text: event.text })
      return
    case 'image-add':
      blocks.push({ kind: 'image', media: event.media })
      return
    case 'tool-call-start': {
      const { id, name, signature } = event
      blocks.push({ kind: 'tool-call', id, name, argumentsText: '', ...(signature !== undefined && { signature }) })
      return
    }
    case 'tool-call-delta':
      // A call comes as two events, directly after one another.
      if (last?.kind === 'tool-call') blocks[blocks.length - 1] = { ...last, argumentsText: event.text }
      return
    case 'choice-finish':
      draft.finish = event.finish
      return
    case 'citation-add':
    case 'refusal-delta':
    case 'thinking-sign':
    case 'thinking-redact':
      return // this vendor sends none of these
  }
}
