import { GatewayError, refusedInside } from '../../base/errors.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { type Finish, markGoogle, type ReplyEvent } from '../../capabilities/conversation.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { objectIn, objectsIn, textIn } from '../loose.ts'
import { madeCallId } from '../made-call-id.ts'
import { readName } from './function-name.ts'
import { readLogprobs } from './read-logprobs.ts'
import { isOutputCounted, readUsage } from './read-usage.ts'

/** Reads the responses of one reply in order; a plain answer is a stream of one. */
export type ResponseReader = (response: JsonObject) => ReplyEvent[]

/** The state of one candidate so far; `hasSpoken`: whether there was anything but thinking. */
type Candidate = { calls: number; hasSpoken: boolean; finish: Finish | undefined }

export function openResponses(): ResponseReader {
  const candidates = new Map<number, Candidate>()
  let isStarted = false
  let hasSpoken = false

  function stateOf(index: number): Candidate {
    const known = candidates.get(index) ?? { calls: 0, hasSpoken: false, finish: undefined }
    candidates.set(index, known)
    return known
  }

  return (response) => {
    if (isObject(response['error'])) return [{ kind: 'failure', error: readFailure(response['error']) }]
    const events: ReplyEvent[] = []
    const ends: ReplyEvent[] = []
    const id = textIn(response['responseId'])
    if (!isStarted) events.push({ kind: 'reply-start' })
    isStarted = true

    const found = objectsIn(response['candidates'])
    for (const written of found) {
      const index = typeof written['index'] === 'number' ? written['index'] : 0
      const state = stateOf(index)
      const output = readParts(written, { choice: index, state, replyId: id })
      state.hasSpoken ||= output.some(({ kind }) => kind !== 'thinking-delta')
      hasSpoken ||= state.hasSpoken
      events.push(...output)
      ends.push(...readEnd(written, index, state))
    }
    // A blocked prompt has no candidates, so the refusal is the whole reply.
    if (found.length === 0 && isBlocked(response) && stateOf(0).finish === undefined) {
      stateOf(0).finish = 'refusal'
      ends.push({ kind: 'choice-finish', choice: 0, finish: 'refusal' })
    }
    const usage = readCounts(response['usageMetadata'], hasSpoken)
    if (usage !== undefined) events.push({ kind: 'usage-count', usage })
    // Ends come last: reading stops at a failure, and the usage must be known by then.
    return [...events, ...ends]
  }
}

/** The usage without its output, so that this is estimated, where the vendor spoke but did not count its words. */
function readCounts(written: Json | undefined, hasSpoken: boolean): Usage | undefined {
  const usage = readUsage(written)
  const isCounted = !hasSpoken || isOutputCounted(objectIn(written))
  if (usage === undefined || isCounted || usage.output !== usage.reasoning) return usage
  const { output: _, ...others } = usage
  return others
}

/** A response, or a list of them: an error comes as a list of one where a stream was asked for. */
export function responsesIn(json: Json | undefined): readonly JsonObject[] {
  return objectsIn(Array.isArray(json) ? json : [json ?? null])
}

function isBlocked({ promptFeedback }: JsonObject): boolean {
  return textIn(objectIn(promptFeedback)['blockReason']) !== ''
}

type Place = { readonly choice: number; readonly state: Candidate; readonly replyId: string }

function readParts(candidate: JsonObject, place: Place): ReplyEvent[] {
  const { choice } = place
  const events: ReplyEvent[] = []
  let logprobs = readLogprobs(candidate['logprobsResult'])
  for (const part of objectsIn(objectIn(candidate['content'])['parts'])) {
    const { text, thought, functionCall, inlineData } = part
    if (isObject(functionCall)) events.push(...readCall(functionCall, part['thoughtSignature'], place))
    else if (isObject(inlineData)) events.push(...(thought === true ? [] : readImage(inlineData, choice)))
    else if (typeof text !== 'string' || text === '') continue
    else if (thought === true) events.push({ kind: 'thinking-delta', choice, text })
    else {
      events.push({ kind: 'text-delta', choice, text, ...(logprobs !== undefined && { logprobs }) })
      logprobs = undefined
    }
  }
  return events
}

/** A call arrives whole in one part. */
function readCall(call: JsonObject, signature: Json | undefined, { choice, state, replyId }: Place): ReplyEvent[] {
  const name = readName(textIn(call['name']))
  const text = JSON.stringify(objectIn(call['args']))
  const at = state.calls++
  return [
    {
      kind: 'tool-call-start',
      choice,
      call: at,
      id: callId(call['id'], [replyId === '' ? `${name} ${text}` : replyId, choice, at]),
      name,
      ...(typeof signature === 'string' && signature !== '' && { signature: markGoogle(signature) }),
    },
    { kind: 'tool-call-delta', choice, call: at, text },
  ]
}

// The ids that every protocol takes back: OpenAI at most 40 characters, Anthropic only these characters.
const plainId = /^[\w-]{1,40}$/

/** The vendor's own id where it is usable, otherwise one that is the same whenever the same reply is read. */
function callId(given: Json | undefined, seed: readonly (string | number)[]): string {
  if (typeof given === 'string' && plainId.test(given)) return given
  return madeCallId(typeof given === 'string' && given !== '' ? given : JSON.stringify(seed))
}

function readImage({ mimeType, data }: JsonObject, choice: number): ReplyEvent[] {
  if (typeof mimeType !== 'string' || typeof data !== 'string' || !mimeType.startsWith('image/')) return []
  return [{ kind: 'image-add', choice, media: { kind: 'bytes', mediaType: mimeType, base64: data } }]
}

/** The reasons that do not mean an ordinary stop; all others do. */
const finishes: ReadonlyMap<string, Finish | 'botched'> = new Map([
  ['MAX_TOKENS', 'length'],
  ['SAFETY', 'refusal'],
  ['RECITATION', 'refusal'],
  ['BLOCKLIST', 'refusal'],
  ['PROHIBITED_CONTENT', 'refusal'],
  ['SPII', 'refusal'],
  ['MODEL_ARMOR', 'refusal'],
  ['IMAGE_SAFETY', 'refusal'],
  ['IMAGE_PROHIBITED_CONTENT', 'refusal'],
  ['IMAGE_RECITATION', 'refusal'],
  ['IMAGE_OTHER', 'refusal'],
  // The model's own mistakes: a call or an answer that cannot be used.
  ['MALFORMED_FUNCTION_CALL', 'botched'],
  ['UNEXPECTED_TOOL_CALL', 'botched'],
  ['TOO_MANY_TOOL_CALLS', 'botched'],
  ['MISSING_THOUGHT_SIGNATURE', 'botched'],
  ['MALFORMED_RESPONSE', 'botched'],
])

/** The end of a candidate, unless the same was given before: some servers repeat it with every response. */
function readEnd(candidate: JsonObject, choice: number, state: Candidate): ReplyEvent[] {
  const { finishReason: reason } = candidate
  if (typeof reason !== 'string' || reason === '' || reason === 'FINISH_REASON_UNSPECIFIED') return []
  const known = finishes.get(reason) ?? 'stop'
  // A botched answer is a failure, also after thinking: a client would take an empty reply for the model's last word.
  // What was said before it is already delivered, and is the reply.
  if (known === 'botched' && !state.hasSpoken) {
    const error = new GatewayError('upstream-failed', `The model failed to form an answer (${reason}).`)
    return [{ kind: 'failure', error }]
  }
  const isStop = known === 'stop' || known === 'botched'
  // The vendor gives STOP after calls too.
  const stopped = state.calls > 0 ? 'tool-calls' : 'stop'
  const finish = isStop ? stopped : known
  if (finish === state.finish) return []
  state.finish = finish
  return [{ kind: 'choice-finish', choice, finish }]
}

/** An error object in place of an answer. Its `code` is the HTTP status that the error has outside of a stream. */
function readFailure(error: JsonObject): GatewayError {
  const message = textIn(error['message']) || "The model's vendor reported an error."
  const { code } = error
  if (typeof code !== 'number') return new GatewayError('upstream-failed', message)
  return refusedInside({ status: code, body: JSON.stringify({ error }) }, message)
}
