import type { GatewayError } from '../base/errors.ts'
import type { Log, LogFields } from '../base/log.ts'
import type { Nano } from '../base/money.ts'
import type { RequestRecord } from '../store/requests.ts'
import { httpStatusOf } from '../wire/openai/errors.ts'
import type { Ending, Order } from './billing.ts'

/** The record of a request, the same in every billing mode. */
export function recordOf(order: Order, ending: Omit<Ending, 'attempts'>): RequestRecord {
  return {
    id: order.requestId,
    keyId: order.keyId,
    model: order.model,
    capability: order.capability,
    status: ending.status,
    streamed: ending.streamed,
    durationMs: ending.durationMs,
    createdAt: order.startedAt,
  }
}

/** The status on the record of a request whose process died: its client saw the connection break. */
export const crashedStatus = 500

/** The status on the record of a request that failed, if need be in its stream. Another protocol may show another. */
export function recordedStatus(error: GatewayError): number {
  return httpStatusOf(error)
}

/** Usage beyond the hold means a wrong price list or a vendor's miscount, which an operator has to look into. */
export function logExcess(log: Log, about: LogFields, excess: Nano): void {
  if (excess > 0n) log.error({ ...about, excess: String(excess) }, 'usage exceeds the hold')
}
