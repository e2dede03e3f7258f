import type { GatewayError } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import type { Asked, AskFacts } from './ask.ts'
import type { Conversation, Reply, ReplyEvent } from './conversation.ts'
import type { ModelTraits } from './limits.ts'
import type { Usage } from './usage.ts'

/** A way of speaking. Where client and vendor share one, the answer's bytes go through as they came. */
export type Protocol = 'openai' | 'anthropic' | 'gemini' | 'responses'

/** What the rules of a chat request need to know of its model. */
export type ChatTraits = Pick<
  ModelTraits,
  'id' | 'contextTokens' | 'outputTokensMax' | 'choicesMax' | 'reasoning' | 'efforts' | 'refusesEffort' | 'sells'
>

/** A chat request, checked. The facts are what admission, billing and routing need; the rest stays in its protocol. */
export type ChatAsk = AskFacts & {
  readonly capability: 'chat'
  readonly protocol: Protocol
  /** Whether the client asked to see usage at the end of its stream; it is metered either way. */
  readonly usageShown: boolean
  readonly choices: number
  /** The most output tokens one choice may have: the client's cap, or else the model's. */
  readonly outputTokensMax: number
  /** An upper bound: a byte-level tokenizer never makes more tokens than there are bytes. */
  readonly inputTokensMax: number
  /** Searches that the vendor itself may make and charge for; 0 where none was asked for. */
  readonly searchesMax: number
  /** The body in the client's protocol, validated; opaque to everything but that protocol's codec. */
  readonly native: JsonObject
  /** Headers that are part of the client's protocol, and go on to vendors that share it. */
  readonly headers: Readonly<Record<string, string>>
}

type Facts = Omit<ChatAsk, 'capability' | 'bound' | 'believable'>

/** A chat ask with its bound: choices that have to be asked for side by side each pay for the whole input. */
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

/** What a stream has shown so far; read at its end to settle, whichever way the end came. */
export type StreamFacts = {
  /**
   * The vendor's own count, when it has come. One without `output` counts the prompt alone, as a stream of the messages
   * protocol begins: until the rest comes, the output is to be estimated.
   */
  readonly usage: Usage | undefined
  /** Every choice gave its finish reason. */
  readonly finished: boolean
  /** The protocol's own end of stream was seen. */
  readonly ended: boolean
  /** The vendor reported a failure inside the stream. */
  readonly failure: GatewayError | undefined
  /** Events with output in them, and an estimate of the bytes of output they carried. */
  readonly outputEvents: number
  readonly outputBytes: number
  /**
   * Whether that output is the client's to pay for: it was shown some of it, or left by itself before that. Absent where
   * it is shown all that comes.
   */
  readonly isOwed?: boolean
  /** What the vendor's own tools did so far, for when its count of it does not come. Absent where it has none. */
  readonly hosted?: HostedWork
}

/** Searches are charged by the piece; what they found is read by the model, as input. */
export type HostedWork = { readonly searches: number; readonly foundBytes: number }

/** Follows one stream of a vendor to its client: what goes on, what waits, what is rewritten or translated. */
export type ChatStream = {
  readonly facts: StreamFacts
  /** One whole event in; the bytes to forward now, or undefined when it is held back or dropped. */
  take(event: Uint8Array): Uint8Array | undefined
  /** Its client has left. */
  left?(): void
  /** What was held back for the end, to be sent once the settlement is recorded. */
  closing(): Uint8Array
  /** An error in place of the end, where the protocol's events are counted and it has to go on with the count. */
  failing?(error: GatewayError): Uint8Array
}

/** A whole answer, ready for the client. */
export type ChatAnswer = {
  readonly usage: Usage | undefined
  /** Tokens of the text that was made, for when the vendor counted none. */
  estimateOutput(): number
  readonly body: Uint8Array
}

/** Writes a reply in the client's protocol as it is made. */
export type ReplyWriter = {
  /** The bytes to send now, or undefined where there is nothing to say yet. */
  write(events: readonly ReplyEvent[]): Uint8Array | undefined
  /** Whether the client is shown nothing of an event with output. Absent where it sees them all. */
  hides?(event: ReplyEvent): boolean
  /** The end of the stream, with the usage where the protocol or the client wants it: sent once it is settled. */
  closing(usage: Usage | undefined): Uint8Array
  /** An error in place of the end, where the protocol's events are counted and it has to go on with the count. */
  failing?(error: GatewayError): Uint8Array
}

/** Reads a vendor's stream, one whole event at a time. It may keep what belongs together until it is complete. */
export type ReplyReader = {
  read(event: Uint8Array): readonly ReplyEvent[]
}

/** What a translated reply is called: ours, since the vendor's own id may be missing or of another form. */
export type ReplyName = {
  readonly requestId: string
  readonly createdAt: number
  /** Milliseconds since then. */
  elapsedMs(): number
}

/** One protocol as chat is spoken in it. `wire/` implements it, `http/` puts it on the request, `flow/` only calls it. */
export type ChatCodec = {
  readonly protocol: Protocol
  /** Throws bad-request with the field at fault. `lookUp` throws for a model the caller may not use. */
  readAsk(asked: Asked, lookUp: (model: string) => ChatTraits): ChatAsk
  /** A count of the input for when the vendor gave none: an estimate, and marked as one where it is used. */
  estimateInput(ask: ChatAsk): number
  writeStreamError(error: GatewayError): Uint8Array
  /** Says between two events of a stream that it lives. A comment of server-sent events, where the protocol has none. */
  readonly keepAlive?: Uint8Array

  /** The vendor speaks another. Throws bad-request for what no other protocol could take, naming the field. */
  readConversation(ask: ChatAsk): Conversation
  writeAnswer(ask: ChatAsk, reply: Reply, name: ReplyName): Uint8Array
  openWriter(ask: ChatAsk, name: ReplyName): ReplyWriter

  /** The vendor speaks this protocol too. Throws where the body is an error or no answer, whatever its status said. */
  passAnswer(ask: ChatAsk, body: Uint8Array): ChatAnswer
  passStream(ask: ChatAsk): ChatStream
}

/** A protocol in which a prompt can be counted, without an answer to it. */
export type CountCodec = Pick<ChatCodec, 'readAsk' | 'estimateInput'> & {
  /** The vendor speaks another. Throws bad-request for what cannot be asked there: nobody could count it. */
  checkTranslated(ask: ChatAsk): void
}
