import { jsonReply, type Reply } from '../base/http/reply.ts'

/** Why a node should get no traffic now; empty when it should. */
export type Readiness = () => Promise<readonly string[]>

/** The process is up. */
export function serveHealth(): Reply {
  return jsonReply({ status: 'ok' })
}

/** The process can do its work; a load balancer sends traffic while this is 200. */
export function serveReadiness(readiness: Readiness) {
  return async (): Promise<Reply> => {
    const reasons = await readiness()
    if (reasons.length === 0) return jsonReply({ status: 'ready' })
    return jsonReply({ status: 'not ready', reasons }, { status: 503, headers: { 'retry-after': '1' } })
  }
}
