import type { GatewayError } from '../base/errors.ts'
import type { AttemptId } from '../base/ids.ts'
import type { JsonObject } from '../base/json.ts'
import type { ChatAsk, Protocol, ReplyReader } from '../capabilities/chat.ts'
import type { EmbeddingsAnswer, EmbeddingsAsk } from '../capabilities/embeddings.ts'
import type { EditsAsk, ImagesAnswer, ImagesAsk } from '../capabilities/images.ts'
import type { VideoKind } from '../capabilities/limits.ts'
import type { Conversation, Reply } from '../capabilities/conversation.ts'
import type { SoundForm, SpeechAsk } from '../capabilities/speech.ts'
import type { Counted, Usage } from '../capabilities/usage.ts'
import type { VideoAsk, VideoFacts, VideoNews, VideoResult } from '../capabilities/video.ts'

/** One HTTP call to a vendor, fully spelled out; `upstream/` makes it. A POST where nothing else is said. */
export type Call = {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | FormData
}

/** What an adapter wants done next, or what came of it. Adapters are pure: whoever drives them makes the calls. */
export type Step<Answer> =
  /** To be made side by side; `next` gets their responses in the same order, all of them good. */
  | {
      readonly kind: 'calls'
      readonly calls: readonly StepCall[]
      next(responses: readonly Responded[]): Step<Answer>
      /** Where errors come under good statuses: the one that this response has elsewhere. */
      statusOf?(response: Responded): number
      /** What one good response used, for when its neighbours fail: the vendor charges for it all the same. */
      count?(response: Responded, index: number): Counted
      /**
       * Takes what `next` needs out of a response as soon as it comes, and says what it used. The body is then let go, and
       * `next` and `count` get none: for answers that are too many or too large to wait for one another.
       */
      take?(response: Responded, index: number): Counted
    }
  /** `used` has one entry for each call to the vendor that was made, in order: each is on the vendor's bill. */
  | { readonly kind: 'answered'; readonly answer: Answer; readonly used: readonly Counted[] }
  /** The calls were answered, and with nothing to deliver: what they used is our loss. */
  | { readonly kind: 'failed'; readonly error: GatewayError; readonly used: readonly Counted[] }

/**
 * `vendor`: an attempt, billed by the vendor, with our reference. `linked`: a link in the vendor's own answer, fetched
 * under its channel and free. `guarded`: an address that a client gave, fetched by the rules for strangers.
 */
export type StepCall =
  | ({ readonly transport: 'vendor' } & Call)
  | { readonly transport: 'linked'; readonly url: string; readonly bytesMax: number }
  /** `at`: the field in which the client gave it, for the complaint about it. */
  | { readonly transport: 'guarded'; readonly url: string; readonly bytesMax: number; readonly at?: string }

export type Responded = { header(name: string): string | null; readonly body: Uint8Array }

/** The same where the status is still to be judged. */
export type Answered = Responded & { readonly status: number }

/** How a vendor does one thing that it answers as a whole. */
export type Adapter<Ask, Answer> = {
  start(ask: Ask, context: CallContext): Step<Answer>
  /** The client wants a stream, and this vendor's events are those of its protocol; undefined where it cannot. */
  stream?(ask: Ask, context: CallContext): Call | undefined
}

/** How a vendor says a text: one call for each piece of it, whose sound is taken as it comes. */
export type SpeechAdapter = {
  say(ask: SpeechAsk, piece: string, context: CallContext): Saying
}

/** `openReader`: for a good response, in whose headers a vendor may tell what it takes. */
export type Saying = { readonly call: Call; openReader(header: Responded['header']): SoundReader }

/** Takes the sound out of a vendor's response. */
export type SoundReader = {
  /** Of the sound; what comes before the first of it may still decide. */
  readonly form: SoundForm
  /** The vendor's own count, when it has come. */
  readonly usage: Usage | undefined
  /** What the vendor counts for a second of sound, where it counts otherwise than OpenAI: for when it did not say. */
  readonly tokensPerSecond?: number
  /** The vendor's own end was seen, where it has one. */
  readonly ended: boolean
  /** A refusal under a good status, to be explained like any other. */
  readonly refusal: { readonly status: number; readonly body: string } | undefined
  /** Where JSON in the place of sound is a refusal under a good status: the status that it has elsewhere. */
  statusOf?(body: string): number | undefined
  /** The sound in these bytes, none where they hold none. Throws where the vendor says that it failed. */
  read(bytes: Uint8Array): Uint8Array
}

/** What an adapter may know beside the ask. No clock, no network, no store: adapters are pure. */
export type CallContext = {
  readonly baseUrl: string
  readonly credential: string
  readonly upstreamModel: string
  readonly reasoning: boolean
  /** Values of `reasoning_effort`, lowest first; empty where nothing is known of them. */
  readonly efforts: readonly string[]
  readonly outputTokensMax: number
  /** Unix milliseconds, for credentials that are signed anew for each call. */
  readonly now?: number
  /** Our id of this attempt, sent along so that the vendor's bill can be matched with ours. */
  readonly ref: AttemptId
  /** Makes a cache or user label the account's own, so that accounts cannot meet at the vendor. */
  readonly namespaced: (label: string) => string
  /** The vendor does not show our account what its models think, and is not asked to. */
  readonly hidesThoughts?: boolean
}

/** A vendor's answer that is not a success, read whole and bounded. */
export type BadResponse = {
  readonly status: number
  readonly retryAfterSeconds: number | undefined
  readonly body: string
}

/** What a bad response means for the client, for the next attempt, and for the credential that was used. */
export type Verdict = {
  readonly error: GatewayError
  /** Whether another channel may do better: not for a request that is at fault itself. */
  readonly retryable: boolean
  /** The credential is of no use for a while: refused, out of credit, or over its rate. */
  readonly restCredentialSeconds?: number
}

/** What decides in which of its protocols a vendor is asked. */
export type AskedModel = Pick<CallContext, 'upstreamModel' | 'reasoning'>

export type ChatAdapter = {
  readonly protocol: Protocol
  /** The most choices one call may ask for; more are asked for side by side. */
  readonly choicesMax: number
  /**
   * The client speaks the same protocol: its own body goes on. Absent where no client speaks it, undefined where this ask
   * has to be put into other words.
   */
  readonly pass?: (ask: ChatAsk, context: CallContext) => Call | undefined
  /** The client speaks another: what it means is said in this one. */
  translate(ask: ChatAsk, conversation: Conversation, context: CallContext): Call
  /** Whether the vendor itself reads what this address leads to. Absent: it reads the whole web. */
  readonly readsLink?: (url: string) => boolean
  /** Throws where the body is an error or no answer, whatever its status said. */
  readAnswer(body: Uint8Array): Reply
  openReader(): ReplyReader
  /** Whether a refusal is of nothing but to show our account what a model thinks: without that, it may be asked again. */
  hidesThoughts?(error: GatewayError): boolean
  /** A second protocol of the vendor's, and which asks are better made in it. */
  readonly other?: { readonly chat: ChatAdapter; serves(ask: ChatAsk, model: AskedModel): boolean }
  /** The vendor's own count of the input, where it counts for nothing and the client speaks its protocol. */
  count?: {
    call(ask: ChatAsk, context: CallContext): Call
    read(body: Uint8Array): number
  }
}

/** A vendor's tasks. Pure like every adapter: who keeps, polls and bills them is `tasks/`. */
export type VideoAdapter = {
  /** Addresses that the client gave and whose bytes the vendor wants: fetched by the rules for strangers, then `fetched`. */
  fetches?(ask: VideoAsk): readonly string[]
  /**
   * Brings what has to lie with the vendor before an order can name it, right before that, each time that it is sent. The
   * vendor charges nothing for it.
   */
  upload?: {
    /** One after another; none where the order needs none. Throws what `create` would, before anything is sent. */
    calls(ask: VideoAsk, context: CreateContext): readonly Call[]
    /** What the vendor calls it; where the body is an error, or neither, as with `readCreated`. */
    read(response: Responded): string | { readonly errorStatus: number }
  }
  /** Throws bad-request for what the vendor would only refuse minutes later, naming the field. */
  create(ask: VideoAsk, context: CreateContext): Call
  /**
   * The vendor's id of the new task, or, where the body is an error under a good status, the status that such an error has
   * elsewhere. Throws where it is neither.
   */
  readCreated(response: Responded): string | { readonly errorStatus: number }
  /** Where errors come under good statuses: the one that an answer about a task has elsewhere. */
  statusOf?(response: Answered): number
  poll(upstreamId: string, context: CallContext, facts: VideoFacts): Call
  /**
   * `status` may be any: some vendors say with 404 that a task is gone, others with 202 that it is not done. Throws where
   * the response says nothing of the task (429, 5xx, a page): its state stays.
   */
  readTask(response: Answered, facts: VideoFacts): VideoNews
  /** Asks where a film is that was made. Absent where its record says so. */
  locate?: {
    /** Undefined where the record names nothing that could be asked for. */
    call(record: JsonObject, context: CallContext): Call | undefined
    /** Undefined where it is nowhere. Throws where the response says nothing of it: it is asked for again. */
    read(response: Answered, facts: VideoFacts): VideoResult | undefined
  }
  /** Absent where the vendor cannot stop a task. */
  cancel?: {
    /** The same call deletes the record of a task that is over: it is asked about before, and believed only after. */
    readonly deletes?: true
    /** What it has stopped it does not know any more: after its yes, that says the same as a word for it. */
    readonly forgets?: true
    call(upstreamId: string, context: CallContext): Call
    /** Whether the vendor has stopped it; false where it says that it is too late. */
    read(response: Answered): boolean
  }
  /** Looks for a task whose creation was left in doubt. Absent where the vendor has no list. */
  find?: {
    call(sought: SoughtTask, context: CallContext): Call
    /** Its id; `absent` where it surely was not made; `unsure` where the list cannot tell. */
    read(response: Answered, sought: SoughtTask): { readonly upstreamId: string } | 'absent' | 'unsure'
  }
}

export type CreateContext = CallContext & {
  /** Where the vendor may tell us of changes. */
  readonly callbackUrl?: string
  /** The vendor's id of the ask's `draftOf`, once it is known to be the account's own. */
  readonly draftUpstreamId?: string
  /** What `fetches` named, by address. */
  readonly fetched?: ReadonlyMap<string, Responded>
  /** What the vendor calls what `upload` brought, in its order. */
  readonly uploaded?: readonly string[]
}

export type SoughtTask = {
  readonly ref: string
  readonly upstreamModel: string
  readonly kind: VideoKind
  /** Unix milliseconds at which it was sent, or between which, where the vendor's clock and ours do not agree. */
  readonly sentAt: number
  readonly sentUntil?: number
  /** Tasks of the same time that are known to be others. */
  readonly knownIds?: ReadonlySet<string>
}

export type Vendor = {
  readonly id: string
  /** As its official SDK calls it; a channel's own `baseUrl` takes its place. */
  readonly baseUrl: string
  /** The variables that customarily hold its key, most usual first. */
  readonly environment: readonly string[]
  /** What a key of it looks like, where one of another form could only fail. */
  readonly keyForm?: { readonly says: string; readonly pattern: RegExp }
  /** `stop`: it ends charging when the connection ends. `drain`: it goes on, so we read on to its usage. */
  readonly hangup: 'stop' | 'drain'
  /** A server on the operator's own machine, looked for at this address in real mode; its models cost nothing. */
  readonly local: boolean
  readonly chat?: ChatAdapter
  readonly embeddings?: Adapter<EmbeddingsAsk, EmbeddingsAnswer>
  readonly images?: Adapter<ImagesAsk, ImagesAnswer>
  readonly edits?: Adapter<EditsAsk, ImagesAnswer>
  readonly speech?: SpeechAdapter
  readonly video?: VideoAdapter
  explain(response: BadResponse, context: Pick<CallContext, 'baseUrl' | 'credential'>): Verdict
}
