import { isGiven, isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import { isEffort } from '../../capabilities/conversation.ts'
import { hasSignature, takesGoogleSignatures, withoutSignature } from '../google-signature.ts'
import { itemsIn, objectIn } from '../loose.ts'
import { outputCapOf } from './chat-ask.ts'
import { missingReasoning, wantsReasoning } from './write-messages.ts'
import { writeThinking, type Thinker } from './write-thinking.ts'

export type ChatTarget = Thinker & {
  readonly reasoning: boolean
  /** The vendor's name for the output limit. A vendor that ignored the other name would exceed the hold. */
  readonly outputCap: 'max_tokens' | 'max_completion_tokens' | 'either'
  /** Whether usage in a stream has to be asked for; a vendor that always sends it may refuse the field. */
  readonly usageInStream: 'asked' | 'always'
  /** Whether the vendor stores conversations unless told not to. */
  readonly storesByDefault: boolean
  /** `stored`: the vendor takes `metadata` only as labels of an answer that it stores. */
  readonly metadata: 'any' | 'stored'
  /** Whether the vendor knows the role `developer`; others refuse the request, and take the same text as `system`. */
  readonly takesDeveloper: boolean
  /**
   * Fields of the protocol for which the vendor refuses a request. They label it, are hints, or have no effect on the
   * model, so it is sent without them. Empty for vendors that ignore what they do not know.
   */
  readonly leftOut: readonly string[]
  /** The same for the fields of a message. */
  readonly messageLeftOut: readonly string[]
  readonly seedField: 'seed' | 'random_seed'
  /**
   * What the vendor does with `reasoning_content`: some require it in a running tool loop, some refuse the message, and
   * `parts` refuses it too, but takes reasoning among the parts of the content.
   */
  readonly pastReasoning: 'wanted' | 'ignored' | 'refused' | 'parts'
  /** Keeps the cache and user labels of different accounts distinct at the vendor. */
  namespaced(label: string): string
}

/** The fields by which OpenAI groups the requests of one sender. */
export const labels = ['prompt_cache_key', 'user', 'safety_identifier'] as const

/** The labels among these fields, each made distinct from the same label of another account. */
export function namespacedLabels(fields: JsonObject, { namespaced }: Pick<ChatTarget, 'namespaced'>): JsonObject {
  const named: Record<string, Json> = {}
  for (const label of labels) {
    const value = fields[label]
    if (typeof value === 'string') named[label] = namespaced(value)
  }
  return named
}

/** The vendor's body: the client's own, with only the documented changes. Unknown fields stay. */
export function passAsk(ask: ChatAsk, target: ChatTarget): string {
  const labelled = namespacedLabels(ask.native, target)
  const body: Record<string, Json | undefined> = { ...ask.native, ...labelled, model: target.upstreamModel }
  if (ask.stream && target.usageInStream === 'asked') {
    body['stream_options'] = { ...objectIn(body['stream_options']), include_usage: true }
  }
  if (ask.stream && target.usageInStream === 'always') delete body['stream_options']
  spellCap(body, target)
  // This is one of several calls for a client that asked for several choices.
  if (isGiven(body['n']) && body['n'] !== ask.choices) delete body['n']
  spellEffort(body, target)
  for (const list of ['tools', 'functions']) if (isEmptyList(body[list])) delete body[list]
  body['messages'] = itemsIn(body['messages']).map((message) => passMessage(message, target))
  if (target.storesByDefault && !isGiven(body['store'])) body['store'] = false
  if (target.metadata === 'stored' && body['store'] !== true) delete body['metadata']
  spellSeed(body, target)
  leaveOut(body, target)
  return JSON.stringify(body)
}

/** A vendor that refuses fields it does not know refuses them with a null, too. */
function leaveOut(body: Record<string, Json | undefined>, { leftOut }: ChatTarget): void {
  if (leftOut.length === 0) return
  for (const [field, value] of Object.entries(body)) if (leftOut.includes(field) || !isGiven(value)) delete body[field]
}

function spellSeed(body: Record<string, Json | undefined>, { seedField }: ChatTarget): void {
  if (seedField === 'seed' || !isGiven(body['seed'])) return
  body[seedField] = body['seed']
  delete body['seed']
}

/** Some clients write an empty list where they mean none, which OpenAI and others refuse. */
function isEmptyList(value: Json | undefined): boolean {
  return Array.isArray(value) && value.length === 0
}

function passMessage(written: Json, target: ChatTarget): Json {
  const message = withoutRefused(written, target)
  if (!target.takesDeveloper && isObject(message) && message['role'] === 'developer') {
    return { ...message, role: 'system' }
  }
  return withReasoning(withoutForeign(withoutForeignParts(withoutEmptyCalls(message), target), target), target)
}

/**
 * What a client repeats of an answer beside its text and calls, for vendors that refuse it. A refusal in words is what
 * the model said, so it stays as text.
 */
function withoutRefused(written: Json, { messageLeftOut }: ChatTarget): Json {
  if (messageLeftOut.length === 0 || !isObject(written)) return written
  const { role, refusal, content } = written
  const kept = Object.entries(written).filter(([field, value]) => {
    // The result of a call may have a name everywhere.
    const isRefused = messageLeftOut.includes(field) && !(field === 'name' && role === 'tool')
    return field === 'content' || (isGiven(value) && !isRefused)
  })
  return { ...Object.fromEntries(kept), ...(isGiven(refusal) && !isGiven(content) && { content: refusal }) }
}

function withoutEmptyCalls(written: Json): Json {
  if (!isObject(written) || !isEmptyList(written['tool_calls'])) return written
  const { tool_calls: _, ...message } = written
  return message
}

/** One limit, under the name that the vendor reads; where it reads either and both were given, the older name. */
function spellCap(body: Record<string, Json | undefined>, target: ChatTarget): void {
  const both = isGiven(body['max_tokens']) && isGiven(body['max_completion_tokens'])
  if (target.outputCap === 'either' && !target.reasoning && !both) return
  const cap = outputCapOf(body)
  delete body['max_tokens']
  delete body['max_completion_tokens']
  if (cap !== undefined) body[capField(target)] = cap
}

/** Where the vendor reads either name, its models of the reasoning class take only the newer one. */
export function capField({ reasoning, outputCap }: ChatTarget): 'max_tokens' | 'max_completion_tokens' {
  if (outputCap !== 'either') return outputCap
  return reasoning ? 'max_completion_tokens' : 'max_tokens'
}

/** Rewrites an effort for a vendor with thinking fields of its own; where the client wrote those, they stay. */
function spellEffort(body: Record<string, Json | undefined>, target: ChatTarget): void {
  const effort = body['reasoning_effort']
  if (target.thinkingSwitch === 'effort' || typeof effort !== 'string' || !isEffort(effort)) return
  if (isGiven(body['enable_thinking']) || isGiven(body['thinking'])) return
  delete body['reasoning_effort']
  Object.assign(body, writeThinking({ effort, isShown: true }, target))
}

/**
 * A conversation that began with another vendor's model carries what we showed of it: signed thinking and signed calls.
 * Only the vendor that made these takes them, and some vendors refuse a message for an unknown field.
 */
function withoutForeign(written: Json, target: ChatTarget): Json {
  const { upstreamModel, pastReasoning } = target
  const message = objectIn(written)
  if (message['role'] !== 'assistant') return written
  const { thinking_blocks: signed, reasoning_content: words, tool_calls: calls, ...rest } = message
  const isForeign = isGiven(signed) && !/claude/i.test(upstreamModel)
  // Beside signed thinking, `reasoning_content` repeats the same text.
  const isRepeated = isForeign && !wantsReasoning(target)
  const isUnwanted = words !== undefined && (isRepeated || pastReasoning === 'refused' || pastReasoning === 'parts')
  const isSigned = itemsIn(calls).some(hasSignature) && !takesGoogleSignatures(upstreamModel)
  if (!isForeign && !isUnwanted && !isSigned) return written
  return {
    ...rest,
    ...(!isForeign && isGiven(signed) && { thinking_blocks: signed }),
    ...(!isUnwanted && words !== undefined && { reasoning_content: words }),
    ...(calls !== undefined && { tool_calls: isSigned ? itemsIn(calls).map(withoutSignature) : calls }),
  }
}

/** Many clients keep no reasoning, and other vendors' models show none; these models refuse a call without any. */
function withReasoning(written: Json, target: ChatTarget): Json {
  const { role, tool_calls: calls, reasoning_content: words } = objectIn(written)
  if (role !== 'assistant' || !isGiven(calls) || (isGiven(words) && words !== '') || !wantsReasoning(target))
    return written
  return { ...objectIn(written), reasoning_content: missingReasoning }
}

const partsOfMistral: ReadonlySet<Json | undefined> = new Set(['thinking', 'reference'])

/** Only Mistral takes back the parts that its models put among their text; others refuse a part they do not know. */
function withoutForeignParts(written: Json, { pastReasoning }: ChatTarget): Json {
  const { role, content } = objectIn(written)
  if (pastReasoning === 'parts' || role !== 'assistant' || !Array.isArray(content)) return written
  const parts = itemsIn(content).filter((part) => !partsOfMistral.has(objectIn(part)['type']))
  if (parts.length === content.length) return written
  return { ...objectIn(written), content: parts.length > 0 ? parts : '' }
}
