import type { GatewayError } from '../base/errors.ts'
import type { RequestId } from '../base/ids.ts'

export type WireError = {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** How one protocol renders an error. No other code writes an error body. */
export type WriteError = (error: GatewayError, requestId: RequestId) => WireError
