import type { GatewayError } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { Bytes } from '../base/spliced.ts'
import type { ReceivedRequest, AskFacts } from './ask.ts'
import type { Conversation, MediaLink, Reply, ReplyEvent } from './conversation.ts'
import type { ModelTraits } from './limits.ts'
import type { Usage } from './usage.ts'

/** A chat protocol. Where client and vendor speak the same one, the answer's bytes pass through unchanged. */
export type Protocol = 'openai' | 'anthropic' | 'gemini' | 'responses'

/** What the rules of a chat request need to know about its model. */
export type ChatTraits = Pick<
  ModelTraits,
  'id' | 'contextTokens' | 'outputTokensMax' | 'choicesMax' | 'reasoning' | 'efforts' | 'refusesEffort' | 'sells'
>

/** A validated chat request. The facts are for admission, billing and routing; the rest stays in its protocol. */
export type ChatAsk = AskFacts & {
  readonly capability: 'chat'
  readonly protocol: Protocol
  /** Whether the client asked to see usage at the end of its stream; it is metered either way. */
  readonly usageShown: boolean
  readonly choices: number
  /** The most output tokens of one choice: the client's cap, otherwise the model's. */
  readonly outputTokensMax: number
  /** An upper bound: a byte-level tokenizer never makes more tokens than there are bytes. */
  readonly inputTokensMax: number
  /** The most web searches that the vendor itself may make and charge; 0 where none was asked for. */
  readonly searchesMax: number
  /** The body in the client's protocol, validated; opaque to everything but that protocol's codec. */
  readonly native: JsonObject
  /** Headers that are part of the client's protocol and are passed on to vendors that share it. */
  readonly headers: Readonly<Record<string, string>>
}

type Facts = Omit<ChatAsk, 'capability' | 'bound' | 'believable'>

/** Adds the bound to a chat ask. Input counts once per choice, because choices may need a call each. */
export function chatAsk(facts: Facts, { contextTokens, outputTokensMax }: ChatTraits): ChatAsk {
  const { choices } = facts
  return {
    ...facts,
    capability: 'chat',
    bound: {
      input: choices * facts.inputTokensMax,
      output: choices * facts.outputTokensMax,
      webSearch: choices * facts.searchesMax,
      request: choices,
    },
    believable: { input: choices * contextTokens, output: choices * outputTokensMax },
  }
}

/** What a stream has shown so far; read at its end for the settlement, however the stream ended. */
export type StreamFacts = {
  /**
   * The vendor's own count, once it has come. Without `output` it counts only the prompt, as at the beginning of a
   * stream in the messages protocol: until the rest comes, the output has to be estimated.
   */
  readonly usage: Usage | undefined
  /** Every choice has given its finish reason. */
  readonly finished: boolean
  /** The protocol's own end of stream was seen. */
  readonly ended: boolean
  /** The vendor reported a failure inside the stream. */
  readonly failure: GatewayError | undefined
  /** Events with output in them, and an estimate of the bytes of output they carried. */
  readonly outputEvents: number
  readonly outputBytes: number
  /** Images in the output, whose bytes say nothing about their tokens. */
  readonly images: number
  /**
   * Whether the customer pays for that output: the client was shown some of it, or left of its own accord before that.
   * Absent where the client is shown everything.
   */
  readonly isOwed?: boolean
  /** What the vendor's own tools did so far, for when its count does not come. Absent where it has no such tools. */
  readonly hosted?: HostedWork
}

/** Each web search is charged, and the model reads what it found as input. */
export type HostedWork = { readonly searches: number; readonly foundBytes: number }

/** Follows one stream from the vendor to the client: what is forwarded, held back, rewritten or translated. */
export type ChatStream = {
  readonly facts: StreamFacts
  /** Takes one whole event and gives the bytes to forward now, or undefined when it is held back or dropped. */
  take(event: Uint8Array): Uint8Array | undefined
  /**
   * What to forward of bytes that are exactly one event, with output and nothing else to be known of it. Undefined
   * where they are anything else: then nothing was taken. It is for the speed of what nearly every read is.
   */
  takeUsual?(bytes: Uint8Array): Bytes | undefined
  /** Called when the client has left. */
  left?(): void
  /** Bytes to send between two events that were forwarded, to show that the stream is alive; undefined for none. */
  keepAlive?(): Uint8Array | undefined
  /** The bytes that were held back for the end, to be sent once the settlement is recorded. */
  closing(): Uint8Array
  /** Writes an error in place of the end, where events are numbered and the error has to continue the numbering. */
  failing?(error: GatewayError): Uint8Array
}

/** A complete answer, ready for the client. */
export type ChatAnswer = {
  readonly usage: Usage | undefined
  /** Estimates the output tokens, for when the vendor reported none. */
  estimateOutput(): number
  /** Images in it, which that estimate leaves out. Absent where the protocol shows none. */
  readonly images?: number
  readonly body: Uint8Array
}

/** Writes a reply in the client's protocol while it is being made. */
export type ReplyWriter = {
  /** The bytes to send now, or undefined where there is nothing to send yet. */
  write(events: readonly ReplyEvent[]): Uint8Array | undefined
  /** Whether an event with output is hidden from the client. Absent where the client sees all of them. */
  hides?(event: ReplyEvent): boolean
  /** The end of the stream, with usage where the protocol or the client wants it; sent once the hold is settled. */
  closing(usage: Usage | undefined): Uint8Array
  /** Writes an error in place of the end, where events are numbered and the error has to continue the numbering. */
  failing?(error: GatewayError): Uint8Array
}

/** Reads a vendor's stream, one whole event at a time. It may hold parts back until what they belong to is complete. */
export type ReplyReader = {
  read(event: Uint8Array): readonly ReplyEvent[]
}

/** From this a translated reply gets an id of ours, because the vendor's own may be missing or of another form. */
export type ReplyName = {
  readonly requestId: string
  readonly createdAt: number
  /** Milliseconds since `createdAt`. */
  elapsedMs(): number
}

/** Chat in one protocol. `wire/` implements it, `http/` puts it on the request, `flow/` only calls it. */
export type ChatCodec = {
  readonly protocol: Protocol
  /** Throws bad-request with the field at fault. `lookUp` throws for a model the caller may not use. */
  readAsk(asked: ReceivedRequest, lookUp: (model: string) => ChatTraits): ChatAsk
  /** Estimates the input tokens, for when the vendor reported none; the charge is then marked as estimated. */
  estimateInput(ask: ChatAsk): number
  writeStreamError(error: GatewayError): Uint8Array

  /** For vendors of another protocol. Throws bad-request, naming the field, for what no other protocol can express. */
  readConversation(ask: ChatAsk): Conversation
  writeAnswer(ask: ChatAsk, reply: Reply, name: ReplyName): Uint8Array
  openWriter(ask: ChatAsk, name: ReplyName): ReplyWriter

  /** For vendors of the same protocol. Throws if the body is an error or no answer, whatever its HTTP status. */
  passAnswer(ask: ChatAsk, body: Uint8Array): ChatAnswer
  passStream(ask: ChatAsk): ChatStream
  /**
   * The ask with the `data:` URL that `replace` gives in place of every link to media; the ask itself if it has none.
   */
  replaceLinks(ask: ChatAsk, replace: (link: MediaLink) => string): ChatAsk
}

/** A protocol in which a prompt's tokens can be counted without answering it. */
export type CountCodec = Pick<ChatCodec, 'readAsk' | 'estimateInput' | 'replaceLinks'> & {
  /** For vendors of another protocol. Throws bad-request for what cannot be translated, and so cannot be counted. */
  checkTranslated(ask: ChatAsk): void
}
