import type { GatewayError } from '../base/errors.ts'
import type { AttemptId } from '../base/ids.ts'
import type { ChatAsk, Protocol } from '../capabilities/chat.ts'

/** One HTTP call to a vendor, fully spelled out; `upstream/` makes it. */
export type Call = {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** What an adapter may know beside the ask. No clock, no network, no store: adapters are pure. */
export type CallContext = {
  readonly baseUrl: string
  readonly credential: string
  readonly upstreamModel: string
  readonly reasoning: boolean
  /** Our id of this attempt, sent along so that the vendor's bill can be matched with ours. */
  readonly ref: AttemptId
  /** Makes a cache or user label the account's own, so that accounts cannot meet at the vendor. */
  namespaced(label: string): string
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

export type ChatAdapter = {
  readonly protocol: Protocol
  start(ask: ChatAsk, context: CallContext): Call
}

export type Vendor = {
  readonly id: string
  /** As its official SDK calls it; a channel's own `baseUrl` takes its place. */
  readonly baseUrl: string
  /** The variables that customarily hold its key, most usual first. */
  readonly environment: readonly string[]
  /** `stop`: it ends charging when the connection ends. `drain`: it goes on, so we read on to its usage. */
  readonly hangup: 'stop' | 'drain'
  /** A server on the operator's own machine, looked for at this address in real mode; its models cost nothing. */
  readonly local: boolean
  readonly chat?: ChatAdapter
  explain(response: BadResponse, context: Pick<CallContext, 'baseUrl' | 'credential'>): Verdict
}
