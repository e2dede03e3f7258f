import type { GatewayError } from '../base/errors.ts'
import type { Json, JsonObject } from '../base/json.ts'
import type { Usage } from './usage.ts'

/**
 * A chat in a neutral form: read from the client's protocol and written in the vendor's, and the reply in the opposite
 * direction. What both sides can express has a place here; what only one can express is dropped, as
 * docs/translation.md lists.
 */

/** The client asks the vendor to cache the prompt up to and including this block for this long. */
export type CacheHint = '5m' | '1h'

/** A link of a client, what it is said to lead to, and where the client wrote it. */
export type MediaLink = {
  readonly kind: 'image' | 'audio' | 'video' | 'document'
  readonly url: string
  readonly at: string
}

export type MediaBytes = { readonly kind: 'bytes'; readonly mediaType: string; readonly base64: string }

/** Where the bytes of an image, audio, a video or a file are. */
export type Media =
  | MediaBytes
  | { readonly kind: 'url'; readonly url: string }
  /** Stored at the vendor, under the vendor's own id. */
  | { readonly kind: 'file'; readonly id: string }

export type TextBlock = {
  readonly kind: 'text'
  readonly text: string
  readonly citations?: readonly Citation[]
  /** Set if an assistant's text is separate from the one before it; otherwise the vendor split one for citations. */
  readonly isApart?: boolean
  readonly cache?: CacheHint
}

/** Put between separate texts of an assistant where a protocol has room for only one text. */
export const gap = '\n\n'

/** The source of a statement: a web page, or a document in the prompt. */
export type Citation = {
  readonly url?: string
  readonly title?: string
  readonly citedText?: string
}

/** Where the client wrote the block, as a path in its body: `messages[0].content[1]`. Errors name it. */
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
  /** The reply should cite the parts of the document that it used. */
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

/** A model's reasoning. A vendor accepts it back only with its signature. */
export type ThinkingBlock = { readonly kind: 'thinking'; readonly text: string; readonly signature?: string }
/** Reasoning that only the vendor can read. */
export type RedactedBlock = { readonly kind: 'thinking-redacted'; readonly data: string }

export type ToolCallBlock = {
  readonly kind: 'tool-call'
  readonly id: string
  readonly name: string
  /** A JSON object as text; for a call that was cut off at the end of a reply, only what came, which may be nothing. */
  readonly argumentsText: string
  /** Google signs the call itself; see `markGoogle`. */
  readonly signature?: string
  readonly cache?: CacheHint
}

export type RefusalBlock = { readonly kind: 'refusal'; readonly text: string }

export type UserBlock = TextBlock | ImageBlock | DocumentBlock | AudioBlock | VideoBlock | ToolResultBlock
export type AssistantBlock = TextBlock | ImageBlock | ThinkingBlock | RedactedBlock | ToolCallBlock | RefusalBlock

/** Tool results come first in a user turn, right after the turn of their calls. Neighbouring turns differ in role. */
export type Turn =
  | { readonly role: 'user'; readonly blocks: readonly UserBlock[] }
  | { readonly role: 'assistant'; readonly blocks: readonly AssistantBlock[] }
  /** Instructions in the middle of a conversation. */
  | { readonly role: 'system'; readonly blocks: readonly TextBlock[] }

/** The longest tool name that every vendor accepts. */
export const toolNameCharactersMax = 64

export type Tool = {
  readonly name: string
  readonly description?: string
  /** The JSON Schema of the arguments, always an object. */
  readonly schema: JsonObject
  readonly isStrict?: boolean
  readonly cache?: CacheHint
}

/** Tools that the vendor runs itself, inside the turn. */
export type HostedTool = { readonly kind: 'web-search'; readonly usesMax?: number }

export type ToolChoice = 'auto' | 'none' | 'required' | { readonly name: string }

/** Whether the model must call a tool instead of answering in text. */
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

/** `none` turns thinking off; the rest are in ascending order. */
export const efforts = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const
export type Effort = (typeof efforts)[number]

export function isEffort(value: string | null | undefined): value is Effort {
  return (efforts as readonly (string | null | undefined)[]).includes(value)
}

/** How much a model may think: as an effort or a budget, whichever the client gave, or both. */
export type Thinking = {
  readonly effort?: Effort
  /** The most tokens of thinking. */
  readonly budget?: number
  /** Whether the client wants to read the thinking. */
  readonly isShown: boolean
}

// Turns a client's budget into an effort: a budget below each number of tokens means the effort beside it.
const budgetEfforts = [
  [2_048, 'low'],
  [8_192, 'medium'],
] as const

/**
 * Of the efforts that a model takes, the nearest to what the client wants, if possible a lower one; undefined where the
 * model takes none, or where the client wants no thinking and the model cannot turn it off.
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
  /** The client's cap. Absent: the vendor's default applies, or the model's maximum where the vendor requires a cap. */
  readonly outputTokensMax?: number
  readonly temperature?: number
  readonly topP?: number
  readonly topK?: number
  readonly stop: readonly string[]
  readonly seed?: number
  readonly presencePenalty?: number
  readonly frequencyPenalty?: number
  /** How many alternatives to show for each token; 0 shows only the chosen one. */
  readonly logprobs?: number
  readonly format?: ReplyFormat
  readonly thinking?: Thinking
  /** Whether the client, which says nothing of how much to think, wants to read what the model thinks by itself. */
  readonly showsOwnThinking?: boolean
  /** How long the client wants the answer to be. */
  readonly verbosity?: 'low' | 'medium' | 'high'
  /** The client's own user, as the client names them. */
  readonly user?: string
  /** Requests with the same key are likely to reach the same cache at the vendor. */
  readonly cacheKey?: string
}

export type Finish = 'stop' | 'stop-sequence' | 'length' | 'tool-calls' | 'refusal' | 'pause'

/** Whether this finish cuts a reply off, so that its last block may be incomplete. */
export function isCutOff(finish: Finish): boolean {
  return finish === 'length' || finish === 'refusal'
}

export type Choice = {
  readonly blocks: readonly AssistantBlock[]
  readonly finish: Finish
  /** The stop sequence that ended the choice. */
  readonly stopSequence?: string
  /** In the form of the common protocol. */
  readonly logprobs?: Json
}

export type Reply = {
  readonly choices: readonly Choice[]
  readonly usage: Usage | undefined
}

/** A reply as it is made. Blocks of one choice do not overlap, but its tool calls may grow side by side, by `call`. */
export type ReplyEvent =
  | { readonly kind: 'reply-start' }
  | { readonly kind: 'text-delta'; readonly choice: number; readonly text: string; readonly logprobs?: Json }
  | { readonly kind: 'citation-add'; readonly choice: number; readonly citation: Citation }
  | { readonly kind: 'refusal-delta'; readonly choice: number; readonly text: string }
  | { readonly kind: 'thinking-delta'; readonly choice: number; readonly text: string }
  /** Ends the thinking block that it signs. `text` is the whole block, because the signature is valid only with it. */
  | { readonly kind: 'thinking-sign'; readonly choice: number; readonly text: string; readonly signature: string }
  | { readonly kind: 'thinking-redact'; readonly choice: number; readonly data: string }
  | { readonly kind: 'image-add'; readonly choice: number; readonly media: Media }
  /** `call` numbers the calls of a choice from 0. */
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
  /** The vendor ran a tool of its own, or showed its result: it charges for both before any text comes. */
  | { readonly kind: 'hosted-tool-run'; readonly searches: number; readonly foundBytes: number }
  /** The total used so far; the last one counts. */
  | { readonly kind: 'usage-count'; readonly usage: Usage }
  /** The vendor shows that it is alive, without output. */
  | { readonly kind: 'heartbeat' }
  /** The protocol's own end of a stream, where it has one. */
  | { readonly kind: 'reply-end' }
  | { readonly kind: 'failure'; readonly error: GatewayError }

/**
 * Signatures travel through clients of other protocols and come back, perhaps to another vendor, so every signature
 * that is not Anthropic's is marked with its vendor.
 */
const googleMark = 'google:'
const openaiMark = 'openai:'

export function markGoogle(signature: string): string {
  return `${googleMark}${signature}`
}

/** The signature as Google made it, or undefined if it is another vendor's. */
export function googleSignature(signature: string | undefined): string | undefined {
  return signature?.startsWith(googleMark) ? signature.slice(googleMark.length) : undefined
}

/** OpenAI signs nothing: the encrypted reasoning itself, which only OpenAI can read, takes the place of a signature. */
export function markOpenai(encrypted: string): string {
  return `${openaiMark}${encrypted}`
}

/** The reasoning as OpenAI encrypted it, or undefined if it is another vendor's. */
export function openaiReasoning(signature: string | undefined): string | undefined {
  return signature?.startsWith(openaiMark) ? signature.slice(openaiMark.length) : undefined
}

/** The signature as Anthropic made it, or undefined if it is another vendor's. */
export function anthropicSignature(signature: string | undefined): string | undefined {
  const isAnothers = [googleMark, openaiMark].some((mark) => signature?.startsWith(mark))
  return signature === undefined || signature === '' || isAnothers ? undefined : signature
}
