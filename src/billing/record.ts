import type { RequestRecord } from '../store/requests.ts'
import type { Ending, Order } from './funds.ts'

/** What is kept of a request, however its money is booked. */
export function recordOf(order: Order, ending: Ending): RequestRecord {
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
