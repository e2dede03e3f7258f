import { isObject, type JsonObject } from '../../base/json.ts'
import { dataOf, isNamedError } from '../../base/sse.ts'
import type { ReplyReader } from '../../capabilities/chat.ts'
import type { Citation, ReplyEvent } from '../../capabilities/conversation.ts'
import { unreadableEvent } from '../answer-body.ts'
import { itemsIn, objectIn, objectsIn, parseLoosely, textIn } from '../loose.ts'
import { CallReader } from './call-reader.ts'
import { failureOf, namedFailure } from './errors.ts'
import { partsIn, readCitations, readFinish, reasoningIn, sourcesIn } from './read-answer.ts'
import { usageIn } from './usage.ts'

/** Reads a stream of the common protocol, for clients that speak another. */
export function openReader(): ReplyReader {
  let started = false
  /** The calls of each choice. */
  const calls = new Map<number, CallReader>()
  /** The pages behind the whole text, which are cited at its end. */
  let sources: readonly Citation[] = []

  function callsOf(choice: number): CallReader {
    const known = calls.get(choice) ?? new CallReader(choice)
    calls.set(choice, known)
    return known
  }

  function readChoice(replyId: string, written: JsonObject, events: ReplyEvent[]): void {
    const choice = typeof written['index'] === 'number' ? written['index'] : 0
    const delta = objectIn(written['delta'])
    const { content, refusal, tool_calls: deltas, annotations } = delta
    const thought = reasoningIn(delta)
    if (thought !== undefined) events.push({ kind: 'thinking-delta', choice, text: thought })
    const { logprobs, finish_reason: reason } = written
    for (const { kind, text } of partsIn(content)) {
      if (kind === 'thinking') events.push({ kind: 'thinking-delta', choice, text })
      else events.push({ kind: 'text-delta', choice, text, ...(isObject(logprobs) && { logprobs }) })
    }
    if (typeof refusal === 'string' && refusal !== '') events.push({ kind: 'refusal-delta', choice, text: refusal })
    for (const citation of readCitations(annotations)) events.push({ kind: 'citation-add', choice, citation })
    if (Array.isArray(deltas)) events.push(...callsOf(choice).read(itemsIn(deltas), replyId))
    if (textIn(reason) === '') return
    for (const citation of sources) events.push({ kind: 'citation-add', choice, citation })
    const finish = readFinish(reason, calls.get(choice)?.hasCalls === true)
    events.push({ kind: 'choice-finish', choice, finish })
  }

  return {
    read(event) {
      const data = dataOf(event)
      if (data === '') return [{ kind: 'heartbeat' }]
      if (data.trim() === '[DONE]') return [{ kind: 'reply-end' }]
      if (isNamedError(event)) return [{ kind: 'failure', error: namedFailure(data) }]
      const chunk = parseLoosely(data)
      if (!isObject(chunk)) return [{ kind: 'failure', error: unreadableEvent() }]
      const failure = failureOf(chunk)
      if (failure !== undefined) return [{ kind: 'failure', error: failure }]
      const events: ReplyEvent[] = []
      if (!started) {
        started = true
        events.push({ kind: 'reply-start' })
      }
      const listed = sourcesIn(chunk)
      if (listed.length > 0) sources = listed
      for (const choice of objectsIn(chunk['choices'])) readChoice(textIn(chunk['id']), choice, events)
      const usage = usageIn(chunk)
      if (usage !== undefined) events.push({ kind: 'usage-count', usage })
      return events
    },
  }
}
