import type { GatewayError } from '../base/errors.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { Usage } from './usage.ts'

/**
 * A chat as no protocol in particular says it: read from the client's protocol, written in the vendor's, and the reply
 * the other way. What both sides can say has a place here; what only one can say is dropped, by docs/translation.md.
 */

/** The prompt up to and with this block is worth keeping in the vendor's cache. */
export type CacheHint = '5m' | '1h'

/** Where the bytes of a picture, a sound, a film or a file are. */
export type Media =
  | { readonly kind: 'bytes'; readonly mediaType: string; readonly base64: string }
  | { readonly kind: 'url'; readonly url: string }
  /** Kept at the vendor, under the vendor's own id. */
  | { readonly kind: 'file'; readonly id: string }

export type TextBlock = {
  readonly kind: 'text'
  readonly text: string
  readonly citations?: readonly Citation[]
  /** An assistant's text that is not one with the text before it. Else the two are one, which its vendor cut for citations. */
  readonly isApart?: boolean
  readonly cache?: CacheHint
}

/** Stands between texts of an assistant that are not one, where a protocol has room for one alone. */
export const gap = '\n\n'

/** Where a statement comes from: a page of the web, or a document of the prompt. */
export type Citation = {
  readonly url?: string
  readonly title?: string
  readonly citedText?: string
}

/** Where the client wrote it, as a path in its body: `messages[0].content[1]`. A refusal names it. */
export type Placed = { readonly at?: string }

export type ImageBlock = Placed & {
  readonly kind: 'image'
  readonly media: Media
  readonly detail?: string
  readonly cache?: CacheHint
}

export type DocumentBlock = Placed & {
  readonly kind: 'document'
  readonly media: Media | { readonly kind: 'text'; readonly text: string }
  readonly title?: string
  readonly context?: string
  /** The reply is to say which parts of it were used. */
  readonly isCited?: boolean
  readonly cache?: CacheHint
}

export type AudioBlock = Placed & { readonly kind: 'audio'; readonly media: Media }
export type VideoBlock = Placed & { readonly kind: 'video'; readonly media: Media }

export type ToolResultBlock = Placed & {
  readonly kind: 'tool-result'
  readonly callId: string
  readonly blocks: readonly (TextBlock | ImageBlock | DocumentBlock)[]
  readonly isError: boolean
  readonly cache?: CacheHint
}

/** What a model thought. Only with its signature does a vendor take it back. */
export type ThinkingBlock = { readonly kind: 'thinking'; readonly text: string; readonly signature?: string }
/** Thought that only the vendor can read. */
export type RedactedBlock = { readonly kind: 'thinking-redacted'; readonly data: string }

export type ToolCallBlock = {
  readonly kind: 'tool-call'
  readonly id: string
  readonly name: string
  /** A JSON object as text. Of a call that was cut off, at the end of a reply, what came of it: maybe nothing. */
  readonly argumentsText: string
  /** Google signs the call itself; see `markGoogle`. */
  readonly signature?: string
  readonly cache?: CacheHint
}

export type RefusalBlock = { readonly kind: 'refusal'; readonly text: string }

export type UserBlock = TextBlock | ImageBlock | DocumentBlock | AudioBlock | VideoBlock | ToolResultBlock
export type AssistantBlock = TextBlock | ImageBlock | ThinkingBlock | RedactedBlock | ToolCallBlock | RefusalBlock

/** Tool results come first in a user turn and stand in the turn right after their calls. Neighbours differ in role. */
export type Turn =
  | { readonly role: 'user'; readonly blocks: readonly UserBlock[] }
  | { readonly role: 'assistant'; readonly blocks: readonly AssistantBlock[] }
  /** Instructions in the middle of a conversation. */
  | { readonly role: 'system'; readonly blocks: readonly TextBlock[] }

/** The longest name of a tool that every vendor takes. */
export const toolNameCharactersMax = 64

export type Tool = {
  readonly name: string
  readonly description?: string
  /** JSON Schema of an object. */
  readonly schema: JsonObject
  readonly isStrict?: boolean
  readonly cache?: CacheHint
}

/** Tools that the vendor runs itself, inside the turn. */
export type HostedTool = { readonly kind: 'web-search'; readonly usesMax?: number }

export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string }

/** Whether a call must come, and no words. */
export function isCallForced(choice: ToolChoice | undefined): boolean {
  return choice === 'required' || typeof choice === 'object'
}

export type ReplyFormat =
  | { readonly kind: 'json' }
  | {
      readonly kind: 'schema'
      readonly name?: string
      readonly description?: string
      readonly schema: JsonObject
      readonly isStrict?: boolean
    }

/** `none` switches thinking off; the rest in growing order. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof efforts)[number]

export function isEffort(value: string | null | undefined): value is Effort {
  return (efforts as readonly (string | null | undefined)[]).includes(value)
}

/** How much a model may think: in the client's own measure, or both. */
export type Thinking = {
  readonly effort?: Effort
  /** Tokens. */
  readonly budget?: number
  /** Whether the client wants to read the thoughts. */
  readonly isShown: boolean
}

// By tokens of thought, where a client counts those: below each, the effort beside it.
const budgetEfforts = [
  [2_048, 'low'],
  [8_192, 'medium'],
] as const

/**
 * The effort nearest to what a client wants among those a model takes, rather less than more; undefined where the model
 * takes none, or cannot be kept from thinking.
 */
export function nearestEffort({ effort, budget }: Thinking, among: readonly string[]): Effort | undefined {
  const byBudget = budget === undefined ? 'medium' : (budgetEfforts.find(([below]) => budget < below)?.[1] ?? 'high')
  const wish = efforts.indexOf(effort ?? byBudget)
  const offered = efforts.filter((candidate) => among.includes(candidate))
  if (wish === 0) return offered[0] === 'none' ? 'none' : undefined
  const thinking = offered.filter((candidate) => candidate !== 'none')
  return thinking.findLast((candidate) => efforts.indexOf(candidate) <= wish) ?? thinking[0]
}

export type Conversation = {
  readonly system: readonly TextBlock[]
  readonly turns: readonly Turn[]
  readonly tools: readonly Tool[]
  readonly hostedTools: readonly HostedTool[]
  readonly toolChoice?: ToolChoice
  readonly parallelTools?: boolean
  /** Where the client gave one; the vendor's own default else, or the model's most where it needs one. */
  readonly outputTokensMax?: number
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly stop: readonly string[]
  readonly seed?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  /** How many alternatives to show for each token; 0 shows the chosen one alone. */
  readonly logprobs?: number
  readonly format?: ReplyFormat
  readonly thinking?: Thinking
  /** How long the answer should be. */
  readonly verbosity?: 'low' | 'medium' | 'high'
  /** Who the client's own user is, in the client's words. */
  readonly user?: string
  /** Requests with the same one are likely to meet the same cache at the vendor. */
  readonly cacheKey?: string
}

export type Finish = 'stop' | 'stop-sequence' | 'length' | 'tool-calls' | 'refusal' | 'pause'

/** Whether a reply that ended so was cut off: what came last may not be whole. */
export function isCutOff(finish: Finish): boolean {
  return finish === 'length' || finish === 'refusal'
}

export type Choice = {
  readonly blocks: readonly AssistantBlock[]
  readonly finish: Finish
  /** The sequence that ended it. */
  readonly stopSequence?: string
  /** As the common protocol shows them, the one that does. */
  readonly logprobs?: Json
}

export type Reply = {
  readonly choices: readonly Choice[]
  readonly usage: Usage | undefined
}

/** A reply as it is made. Blocks of one choice do not overlap, except that calls may grow side by side, told apart by `call`. */
export type ReplyEvent =
  | { readonly kind: 'reply-start' }
  | { readonly kind: 'text-delta'; readonly choice: number; readonly text: string; readonly logprobs?: Json }
  | { readonly kind: 'citation-add'; readonly choice: number; readonly citation: Citation }
  | { readonly kind: 'refusal-delta'; readonly choice: number; readonly text: string }
  | { readonly kind: 'thinking-delta'; readonly choice: number; readonly text: string }
  /** Ends the block of thought that it signs. `text` is all of that thought: the signature is of use only beside it. */
  | { readonly kind: 'thinking-sign'; readonly choice: number; readonly text: string; readonly signature: string }
  | { readonly kind: 'thinking-redact'; readonly choice: number; readonly data: string }
  | { readonly kind: 'image-add'; readonly choice: number; readonly media: Media }
  /** `call` counts the calls of a choice from 0. */
  | {
      readonly kind: 'tool-call-start'
      readonly choice: number
      readonly call: number
      readonly id: string
      readonly name: string
      readonly signature?: string
    }
  | { readonly kind: 'tool-call-delta'; readonly choice: number; readonly call: number; readonly text: string }
  | {
      readonly kind: 'choice-finish'
      readonly choice: number
      readonly finish: Finish
      readonly stopSequence?: string
    }
  /** The vendor ran a tool of its own, or showed what came of it: both are on its bill before a word is said. */
  | { readonly kind: 'hosted-tool-run'; readonly searches: number; readonly foundBytes: number }
  /** All that was used so far; the last one counts. */
  | { readonly kind: 'usage-count'; readonly usage: Usage }
  /** The vendor is alive and has nothing to say. */
  | { readonly kind: 'heartbeat' }
  /** The protocol's own end of a stream, where it has one. */
  | { readonly kind: 'reply-end' }
  | { readonly kind: 'failure'; readonly error: GatewayError }

/**
 * Signatures travel through clients of other protocols and come back, maybe to another vendor: one that is not
 * Anthropic's own says whose it is.
 */
const googleMark = 'google:'
const openaiMark = 'openai:'

export function markGoogle(signature: string): string {
  return `${googleMark}${signature}`
}

/** The signature as Google made it, or undefined where another vendor did. */
export function googleSignature(signature: string | undefined): string | undefined {
  return signature?.startsWith(googleMark) ? signature.slice(googleMark.length) : undefined
}

/** OpenAI signs nothing: what stands for a signature is the thought itself, which only OpenAI can read. */
export function markOpenai(encrypted: string): string {
  return `${openaiMark}${encrypted}`
}

/** The thought as OpenAI encrypted it, or undefined where it is another vendor's. */
export function openaiThought(signature: string | undefined): string | undefined {
  return signature?.startsWith(openaiMark) ? signature.slice(openaiMark.length) : undefined
}

/** The signature as Anthropic made it, or undefined where another vendor did. */
export function anthropicSignature(signature: string | undefined): string | undefined {
  const isAnothers = [googleMark, openaiMark].some((mark) => signature?.startsWith(mark))
  return signature === undefined || signature === '' || isAnothers ? undefined : signature
}
