import type { Clock } from '../base/clock.ts'
import { jsonReply, Reply } from '../base/http/reply.ts'
import type { Unsold } from '../catalogue/model.ts'
import { bearerOf } from '../edge/credential.ts'
import type { Route, Visit } from '../edge/route.ts'
import type { Idempotency } from '../idempotency/idempotency.ts'
import type { SecretKeys } from '../keys/secret-keys.ts'
import { storeError } from '../store/faults.ts'
import type { Webhooks } from '../tasks/webhooks/webhooks.ts'
import { writeError } from '../wire/openai/errors.ts'
import { accountCalls } from './accounts.ts'
import type { Call } from './call.ts'
import { creditCalls } from './credits.ts'
import { keyCalls } from './keys.ts'
import { metricCalls, type MetricParts } from './metrics.ts'
import { offeringCalls } from './offering.ts'
import type { Operators } from './operators.ts'
import { recordCalls } from './records.ts'
import { taskCalls } from './tasks.ts'
import { webhookCalls } from './webhooks.ts'

export type AdminParts = MetricParts & {
  readonly clock: Clock
  readonly operators: Operators
  readonly secretKeys: SecretKeys
  readonly idempotency: Idempotency
  /** Brings the rows of these accounts up to date before they are read; see `Books.bringUpToDate`. */
  readonly bringUpToDate: (accountIds: readonly string[]) => Promise<void>
  readonly unsold: () => readonly Unsold[]
  readonly webhooks: Pick<Webhooks, 'secrets' | 'wake'>
}

/** Every path of the operator's port. */
export function makeAdminRoutes(parts: AdminParts): readonly Route[] {
  const accounts = accountCalls(parts)
  const credits = creditCalls(parts)
  const keys = keyCalls(parts)
  const records = recordCalls(parts)
  const offering = offeringCalls(parts)
  const tasks = taskCalls(parts)
  const webhooks = webhookCalls(parts)
  const { operators } = parts

  return [
    guarded('POST', '/admin/accounts', accounts.create),
    guarded('GET', '/admin/accounts', accounts.list),
    guarded('GET', '/admin/accounts/{id}', accounts.read),
    guarded('PATCH', '/admin/accounts/{id}', accounts.change),
    guarded('POST', '/admin/accounts/{id}/credits', credits.add),
    guarded('GET', '/admin/accounts/{id}/credits', credits.list),
    guarded('POST', '/admin/accounts/{id}/webhook-secret', webhooks.newSecret),
    guarded('POST', '/admin/keys', keys.create),
    guarded('GET', '/admin/keys', keys.list),
    guarded('PATCH', '/admin/keys/{id}', keys.change),
    guarded('DELETE', '/admin/keys/{id}', keys.revoke),
    guarded('GET', '/admin/usage', records.usage),
    guarded('GET', '/admin/requests', records.requests),
    guarded('GET', '/admin/requests/{id}', records.request),
    guarded('GET', '/admin/tasks', tasks.list),
    guarded('GET', '/admin/tasks/{id}', tasks.read),
    guarded('GET', '/admin/webhooks', webhooks.list),
    guarded('POST', '/admin/webhooks/{id}/resend', webhooks.resend),
    guarded('GET', '/admin/audit', records.audit),
    guarded('GET', '/admin/models', offering.models),
    guarded('GET', '/admin/channels', offering.channels),
    guarded('GET', '/metrics', metricCalls(parts).show, 'scrapers'),
    { method: 'GET', path: '/healthz', auth: 'open', writeError, serve: () => jsonReply({ status: 'ok' }) },
  ]

  /** Checks the operator's key before a call sees anything of the request, so that no call can forget to. */
  function guarded(method: Route['method'], path: string, work: (call: Call) => unknown, alsoFor?: 'scrapers'): Route {
    const serve = async (visit: Visit): Promise<Reply> => {
      try {
        const key = bearerOf(visit.request)
        const actor = await (alsoFor === 'scrapers'
          ? operators.authenticateScraper(key, visit.address)
          : operators.authenticate(key, visit.address))
        const body = await work({ visit, actor, id: idOf(visit) })
        return body instanceof Reply ? body : jsonReply(body, { headers: visit.responseHeaders })
      } catch (thrown) {
        throw storeError(thrown)
      }
    }
    return { method, path, auth: 'admin', writeError, serve }
  }
}

/** Text that cannot be an id never reaches the database, since PostgreSQL refuses some characters with an error. */
function idOf({ id }: Visit): string {
  return /^[\w-]{1,100}$/.test(id) ? id : ''
}
