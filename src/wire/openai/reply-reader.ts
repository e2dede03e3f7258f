import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { dataOf, isNamedError } from '../../base/sse.ts'
import type { ReplyReader } from '../../capabilities/chat.ts'
import type { Citation, ReplyEvent } from '../../capabilities/conversation.ts'
import { unreadableEvent } from '../answer-body.ts'
import { readSignature } from '../google-signature.ts'
import { isWholeObject, itemsIn, objectIn, objectsIn, parseLoosely, textIn } from '../loose.ts'
import { madeCallId } from '../made-call-id.ts'
import { failureOf, namedFailure } from './errors.ts'
import { argumentsTextIn, partsIn, readCitations, readFinish, reasoningIn, sourcesIn } from './read-answer.ts'
import { usageIn } from './usage.ts'

/** Reads a stream of the common protocol, for clients that speak another. */
export function openReader(): ReplyReader {
  let started = false
  // The calls of each choice. We count them in the order in which their names came.
  const calls = new Map<number, SeenCall[]>()
  // The pages behind the whole text, which are cited at its end.
  let sources: readonly Citation[] = []

  /** Gives all calls so far, because some servers send an empty list of calls with every delta. */
  function readCalls(
    replyId: string,
    choice: number,
    deltas: readonly Json[],
    events: ReplyEvent[],
  ): readonly SeenCall[] {
    const known = calls.get(choice) ?? []
    calls.set(choice, known)
    for (const [position, delta] of deltas.entries()) {
      if (!isObject(delta)) continue
      const index = typeof delta['index'] === 'number' ? delta['index'] : position
      const called = objectIn(delta['function'])
      const id = textIn(delta['id'])
      const name = textIn(called['name'])
      const text = argumentsTextIn(called['arguments'])
      const found = known[findCall(known, { index, id, name, text })]
      const call = found ?? { index, id, text: '', at: undefined }
      if (found === undefined) known.push(call)
      if (isRepetition(call, text)) continue
      call.text += text
      if (call.at !== undefined) {
        if (text !== '') events.push({ kind: 'tool-call-delta', choice, call: call.at, text })
        continue
      }
      // A name that comes late is waited for: no client can use a call without one, or send it back.
      if (name === '') continue
      const at = known.filter((one) => one.at !== undefined).length
      call.at = at
      const signature = readSignature(delta)
      events.push({
        kind: 'tool-call-start',
        choice,
        call: at,
        id: call.id || id || madeCallId(JSON.stringify([replyId, choice, at])),
        name,
        ...(signature !== undefined && { signature }),
      })
      if (call.text !== '') events.push({ kind: 'tool-call-delta', choice, call: at, text: call.text })
    }
    return known
  }

  function readChoice(replyId: string, written: JsonObject, events: ReplyEvent[]): void {
    const choice = typeof written['index'] === 'number' ? written['index'] : 0
    const delta = objectIn(written['delta'])
    const { content, refusal, tool_calls: deltas, annotations } = delta
    const thought = reasoningIn(delta)
    if (thought !== undefined) events.push({ kind: 'thinking-delta', choice, text: thought })
    const { logprobs } = written
    for (const { kind, text } of partsIn(content)) {
      if (kind === 'thinking') events.push({ kind: 'thinking-delta', choice, text })
      else events.push({ kind: 'text-delta', choice, text, ...(isObject(logprobs) && { logprobs }) })
    }
    if (typeof refusal === 'string' && refusal !== '') events.push({ kind: 'refusal-delta', choice, text: refusal })
    for (const citation of readCitations(annotations)) events.push({ kind: 'citation-add', choice, citation })
    const known = readCalls(replyId, choice, itemsIn(deltas), events)
    const reason = written['finish_reason']
    if (typeof reason === 'string' && reason !== '') {
      for (const citation of sources) events.push({ kind: 'citation-add', choice, citation })
      events.push({
        kind: 'choice-finish',
        choice,
        finish: readFinish(
          reason,
          known.some(({ at }) => at !== undefined),
        ),
      })
    }
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

/** A call with the vendor's index and id, its arguments so far, and the number we gave it once its name was known. */
type SeenCall = { readonly index: number; readonly id: string; text: string; at: number | undefined }

/** A call as far as it tells which deltas are its own. */
type KnownCall = Readonly<Pick<SeenCall, 'index' | 'id' | 'text'>>

/**
 * Which call a delta continues; -1 where it begins one. Some vendors give all parallel calls the same index and only
 * different ids, or no ids either and each call in one piece. A delta without a name cannot begin a call, so an unknown
 * id in it is ignored.
 */
export function findCall(
  known: readonly KnownCall[],
  { index, id, name, text }: KnownCall & { readonly name: string },
): number {
  const same = known.findLastIndex((call) => call.index === index && (id === '' || call.id === '' || call.id === id))
  if (same === -1) return name === '' ? known.findLastIndex((call) => call.index === index) : -1
  const isAnother = id === '' && name !== '' && text !== '' && isWholeObject(known[same]?.text ?? '')
  return isAnother ? -1 : same
}

/** Some servers send all arguments once more at the end of a call. Only a delta that may begin an object is checked. */
function isRepetition({ text: known, at }: SeenCall, text: string): boolean {
  return at !== undefined && text.startsWith('{') && isWholeObject(known)
}
