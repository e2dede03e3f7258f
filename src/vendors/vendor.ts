import type { GatewayError } from '../base/errors.ts'
import type { AttemptId } from '../base/ids.ts'
import type { JsonObject } from '../base/json.ts'
import type { ChatAsk, Protocol, ReplyReader } from '../capabilities/chat.ts'
import type { EmbeddingsAnswer, EmbeddingsAsk } from '../capabilities/embeddings.ts'
import type { EditsAsk, ImagesAnswer, ImagesAsk } from '../capabilities/images.ts'
import type { VideoKind } from '../capabilities/limits.ts'
import type { Conversation, Reply } from '../capabilities/conversation.ts'
import type { ModelRule } from '../capabilities/model-rules.ts'
import type { AudioForm, SpeechAsk } from '../capabilities/speech.ts'
import type { Counted, Usage } from '../capabilities/usage.ts'
import type { VideoAsk, VideoFacts, VideoNews, VideoResult } from '../capabilities/video.ts'

/** One HTTP call to a vendor, written out in full; `upstream/` makes it. A POST unless `method` says otherwise. */
export type Call = {
  readonly method?: 'GET' | 'POST' | 'DELETE'
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Uint8Array | Form
}

/** Sent as `multipart/form-data`. The code that sends it adds the content type, because that names the boundary. */
export type Form = readonly FormPart[]
export type FormPart = { readonly field: string; readonly value: string | FormFile }
export type FormFile = { readonly name: string; readonly mediaType: string; readonly bytes: Uint8Array }

/** What an adapter wants done next, or its outcome. Adapters are pure: the code that drives them makes the calls. */
export type Step<Answer> =
  /** To be made side by side; `next` gets their responses in the same order, all of them successes. */
  | {
      readonly kind: 'calls'
      readonly calls: readonly StepCall[]
      next(responses: readonly VendorResponse[]): Step<Answer>
      /** For vendors that report errors with a 2xx status: the status that this response stands for. */
      statusOf?(response: VendorResponse): number
      /** What one successful response used, for when another call fails: the vendor charges for it all the same. */
      count?(response: VendorResponse, index: number): Counted
      /**
       * Takes what `next` needs out of a response as soon as it arrives, and gives what it used. The body is then
       * dropped, and `next` and `count` get none: for responses too many or too large to be kept until all are there.
       */
      take?(response: VendorResponse, index: number): Counted
    }
  /** `used` has one entry for each call that was made to the vendor, in order, because each is on the vendor's bill. */
  | { readonly kind: 'answered'; readonly answer: Answer; readonly used: readonly Counted[] }
  /** The calls succeeded but gave nothing to deliver: what they used is our loss. */
  | { readonly kind: 'failed'; readonly error: GatewayError; readonly used: readonly Counted[] }

/**
 * `vendor`: an attempt, billed by the vendor and carrying our reference. `linked`: a link in the vendor's own response,
 * fetched under its channel at no cost. `guarded`: a URL that a client gave, fetched by the rules for untrusted URLs.
 */
export type StepCall =
  | ({ readonly transport: 'vendor' } & Call)
  /** `totalMs`: for files that take longer than images do. */
  | { readonly transport: 'linked'; readonly url: string; readonly bytesMax: number; readonly totalMs?: number }
  /** `at`: the field in which the client gave the URL, for the error message about it. */
  | { readonly transport: 'guarded'; readonly url: string; readonly bytesMax: number; readonly at?: string }

export type VendorResponse = { header(name: string): string | null; readonly body: Uint8Array }

/** A response whose status is still to be judged. */
export type ResponseWithStatus = VendorResponse & { readonly status: number }

/** How a vendor serves a capability that it answers as a whole. */
export type Adapter<Ask, Answer> = {
  start(ask: Ask, context: CallContext): Step<Answer>
  /** The call for a client that wants a stream in this vendor's event protocol; undefined where it cannot stream. */
  stream?(ask: Ask, context: CallContext): Call | undefined
}

/** How a vendor speaks a text: one call for each piece of it, whose audio is read as it arrives. */
export type SpeechAdapter = {
  say(ask: SpeechAsk, piece: string, context: CallContext): SpeechCall
}

/** `openReader` reads a successful response; a vendor may say in its headers what it charges. */
export type SpeechCall = { readonly call: Call; openReader(header: VendorResponse['header']): AudioReader }

/** Reads the audio out of a vendor's response. */
export type AudioReader = {
  /** The form of the audio; what precedes the first audio bytes may still decide it. */
  readonly form: AudioForm
  /** The vendor's own count, once it has arrived. */
  readonly usage: Usage | undefined
  /** Tokens per second of audio, where the vendor differs from OpenAI; for an estimate when it sent no count. */
  readonly tokensPerSecond?: number
  /** Whether the vendor's own end of the audio was seen, where it sends one. */
  readonly ended: boolean
  /** A refusal that came with a 2xx status, to be explained like any other. */
  readonly refusal: { readonly status: number; readonly body: string } | undefined
  /** For vendors that refuse with JSON in place of audio and a 2xx status: the status that the body stands for. */
  statusOf?(body: string): number | undefined
  /** The audio in these bytes, empty where they hold none. Throws where the vendor says that it failed. */
  read(bytes: Uint8Array): Uint8Array
}

/** What an adapter may know besides the ask. Adapters are pure, so there is no clock, network or store here. */
export type CallContext = {
  readonly baseUrl: string
  readonly credential: string
  readonly upstreamModel: string
  readonly reasoning: boolean
  /** Values of `reasoning_effort`, lowest first; empty where they are unknown. */
  readonly efforts: readonly string[]
  /** What the model refuses although its protocol allows it. */
  readonly rules: readonly ModelRule[]
  readonly outputTokensMax: number
  /** Unix milliseconds, for credentials that are signed anew for each call. */
  readonly now?: number
  /** Our id of this attempt, sent along so that the vendor's bill can be matched with ours. */
  readonly ref: AttemptId
  /** Makes a cache or user label the account's own, so that labels of two accounts cannot collide at the vendor. */
  readonly namespaced: (label: string) => string
  /** The vendor does not show our account the reasoning of its models, and is not asked to. */
  readonly hidesReasoning?: boolean
}

/** A vendor's response that is not a success, read to its end within a bound. */
export type BadResponse = {
  readonly status: number
  readonly retryAfterSeconds?: number | undefined
  readonly body: string
}

/** What no text for a client may name, although a vendor's response may. */
export type Secrets = Pick<CallContext, 'baseUrl' | 'credential'>

/** What a bad response means for the client, for the next attempt, and for the credential that was used. */
export type Verdict = {
  readonly error: GatewayError
  /** Whether another channel may do better; false where the request itself is at fault. */
  readonly retryable: boolean
  /** How long the credential is of no use: it was refused, is out of credit, or is over its rate. */
  readonly restCredentialSeconds?: number
}

/** What decides which of its protocols a vendor is called in. */
export type AskedModel = Pick<CallContext, 'upstreamModel' | 'reasoning' | 'efforts'>

export type ChatAdapter = {
  readonly protocol: Protocol
  /** The most choices that one call may ask for; more take several calls side by side. */
  readonly choicesMax: number
  /**
   * The call for a client of the same protocol, made from the client's own body. Absent where no client speaks the
   * protocol, undefined where this ask has to be translated.
   */
  readonly pass?: (ask: ChatAsk, context: CallContext) => Call | undefined
  /** The call for a client of another protocol, made from what its conversation means. */
  translate(ask: ChatAsk, conversation: Conversation, context: CallContext): Call
  /** Whether the vendor itself fetches this URL. Absent: it fetches any. */
  readonly readsLink?: (url: string) => boolean
  /** Throws where the body is an error or no answer, whatever the status was. */
  readAnswer(body: Uint8Array): Reply
  openReader(): ReplyReader
  /**
   * The events of a stream that would have said what a whole answer says, with the choices that were asked for. Absent
   * where servers stream if asked to.
   */
  readonly answerEvents?: (body: Uint8Array, choicesMax: number) => readonly Uint8Array[]
  /** Whether a refusal is only about showing our account the reasoning: without that, the ask may be sent again. */
  readonly refusedToShowReasoning?: (error: GatewayError) => boolean
  /** A second protocol of the vendor, and which asks are better served in it. */
  readonly secondProtocol?: { readonly chat: ChatAdapter; serves(ask: ChatAsk, model: AskedModel): boolean }
  /** The vendor's own count of the input, where counting is free and the client speaks its protocol. */
  count?: {
    call(ask: ChatAsk, context: CallContext): Call
    read(body: Uint8Array): number
  }
}

/** A vendor's video tasks. Pure like every adapter: `tasks/` stores, polls and bills them. */
export type VideoAdapter = {
  /** The client's URLs whose bytes the vendor needs: fetched by the rules for untrusted URLs, passed as `fetched`. */
  fetches?(ask: VideoAsk): readonly string[]
  /**
   * Uploads the files that the vendor must have before an order can name them. It is done again each time the order is
   * sent, right before it, and the vendor charges nothing for it.
   */
  upload?: {
    /** Made one after another; empty where the order needs no upload. Throws what `create` would, before any call. */
    calls(ask: VideoAsk, context: CreateContext): readonly Call[]
    /** The vendor's name for the uploaded file; an error, or a body that is neither, is treated as in `readCreated`. */
    read(response: VendorResponse): string | { readonly errorStatus: number }
  }
  /** Throws bad-request, naming the field, for what the vendor would refuse only minutes later. */
  create(ask: VideoAsk, context: CreateContext): Call
  /**
   * The vendor's id of the new task or, where the body is an error with a 2xx status, the status that the error stands
   * for. Throws where it is neither.
   */
  readCreated(response: VendorResponse): string | { readonly errorStatus: number }
  /** For vendors that report errors with a 2xx status: the status that a response about a task stands for. */
  statusOf?(response: ResponseWithStatus): number
  poll(upstreamId: string, context: CallContext, facts: VideoFacts): Call
  /**
   * `status` may be any: some vendors say with 404 that a task is gone, others with 202 that it is not done. Throws
   * where the response says nothing about the task (429, 5xx, an HTML page), whose state then stays.
   */
  readTask(response: ResponseWithStatus, facts: VideoFacts): VideoNews
  /** Asks for the URL of a finished video. Absent where the record holds it. */
  locate?: {
    /** Undefined where the record names no file to ask for. */
    call(record: JsonObject, context: CallContext): Call | undefined
    /** Undefined where there is no URL. Throws where the response says nothing about it, so that it is asked again. */
    read(response: ResponseWithStatus, facts: VideoFacts): VideoResult | undefined
  }
  /** Absent where the vendor cannot stop a task. */
  cancel?: {
    /** The call also deletes tasks that are over: the task is polled before it, and once more to confirm its yes. */
    readonly deletes?: true
    /** The vendor forgets a task that it has stopped: after its yes, an unknown task counts as cancelled. */
    readonly forgets?: true
    call(upstreamId: string, context: CallContext): Call
    /** Whether the vendor has stopped the task; false where it says that it is too late. */
    read(response: ResponseWithStatus): boolean
  }
  /** Looks for a task whose creation is in doubt. Absent where the vendor has no list. */
  find?: {
    call(sought: SoughtTask, context: CallContext): Call
    /** The task's id; `absent` where it surely was not created; `unsure` where the list cannot tell. */
    read(response: ResponseWithStatus, sought: SoughtTask): { readonly upstreamId: string } | 'absent' | 'unsure'
  }
}

export type CreateContext = CallContext & {
  /** Where the vendor may report changes. */
  readonly callbackUrl?: string
  /** The vendor's id of the ask's `draftOf`, once it is known to be the account's own. */
  readonly draftUpstreamId?: string
  /** What `fetches` named, by URL. */
  readonly fetched?: ReadonlyMap<string, VendorResponse>
  /** The vendor's names for the files of `upload`, in the same order. */
  readonly uploaded?: readonly string[]
}

export type SoughtTask = {
  readonly ref: string
  readonly upstreamModel: string
  readonly kind: VideoKind
  /** Unix milliseconds at which the task was sent; up to `sentUntil` where the vendor's clock and ours disagree. */
  readonly sentAt: number
  readonly sentUntil?: number
  /** The vendor's ids of tasks from the same time that are known to be other tasks. */
  readonly knownIds?: ReadonlySet<string>
}

export type Vendor = {
  readonly id: string
  /** The base address as the vendor's official SDK takes it; a channel's own `baseUrl` replaces it. */
  readonly baseUrl: string
  /**
   * Paths that its calls begin with, and that its pages show as part of the base address: there they would come twice.
   */
  readonly callRoots?: readonly string[]
  /** The environment variables that usually hold its key, most usual first. */
  readonly environment: readonly string[]
  /** The form of a credential, for vendors where one of another form could only fail. */
  readonly keyForm?: { readonly says: string; readonly pattern: RegExp }
  /** `stop`: the vendor stops charging when the connection ends. `drain`: it goes on, so we read on to its usage. */
  readonly hangup: 'stop' | 'drain'
  /** A server on the operator's own machine, looked for at `baseUrl` in real mode; its models cost nothing. */
  readonly local: boolean
  readonly chat?: ChatAdapter
  readonly embeddings?: Adapter<EmbeddingsAsk, EmbeddingsAnswer>
  readonly images?: Adapter<ImagesAsk, ImagesAnswer>
  readonly edits?: Adapter<EditsAsk, ImagesAnswer>
  readonly speech?: SpeechAdapter
  readonly video?: VideoAdapter
  explain(response: BadResponse, secrets: Secrets): Verdict
}
