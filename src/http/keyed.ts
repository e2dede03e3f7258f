import { jsonReply, type Reply } from '../base/http/reply.ts'
import type { HttpRequest } from '../base/http/request.ts'
import type { Visit } from '../edge/route.ts'
import type { Line } from '../flow/run.ts'
import type { Principal } from '../keys/key-ring.ts'
import { storeError } from '../store/faults.ts'

/** Serves what a client may ask without buying anything: its key and limits are checked, as on the line. */
export function serveKeyed(
  line: Pick<Line, 'authenticate' | 'limit'>,
  credentialOf: (request: HttpRequest) => string | undefined,
  work: (visit: Visit, principal: Principal) => unknown,
) {
  return async (visit: Visit): Promise<Reply> => {
    const { responseHeaders } = visit
    const setHeader = (header: string, value: string) => {
      responseHeaders[header] = value
    }
    const credential = credentialOf(visit.request)
    const principal = await line.authenticate({ credential, address: visit.address })
    const pass = await line.limit({ principal, setHeader })
    try {
      const body = await work(visit, principal)
      return jsonReply(body, { headers: responseHeaders })
    } catch (thrown) {
      throw storeError(thrown)
    } finally {
      pass.leave(0)
    }
  }
}
