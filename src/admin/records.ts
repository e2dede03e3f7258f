import { z } from 'zod'
import { exactText, pageFields, pageOf, periodFields, readQuery, rowsFor, sumPageFields } from '../reports/query.ts'
import { reportRequests, showAttempt, showRequest } from '../reports/requests.ts'
import { reportUsage } from '../reports/usage.ts'
import { listAudit, placeOfAudit } from '../store/audit.ts'
import { groupings } from '../store/groupings.ts'
import { requestById } from '../store/request-lists.ts'
import type { UsageFilter } from '../store/usage.ts'
import { absent, type Call } from './call.ts'
import { scopeOf, scopeWithKey } from './filters.ts'
import type { AdminParts } from './routes.ts'
import { showAudit } from './show.ts'

const filterFields = {
  ...periodFields,
  account: exactText.exactOptional(),
  key: exactText.exactOptional(),
  model: exactText.exactOptional(),
}
const usageQuery = z.strictObject({
  ...filterFields,
  ...sumPageFields,
  group_by: z.enum(groupings).exactOptional(),
})
const requestsQuery = z.strictObject({ ...filterFields, ...pageFields })
const auditQuery = z.strictObject(pageFields)

type Filtered = { account?: string; key?: string; model?: string; from?: number; to?: number }

export function recordCalls({ store, mode, bringUpToDate }: AdminParts) {
  async function filterOf({ account, key, model, from, to }: Filtered): Promise<UsageFilter> {
    const scope = await scopeWithKey(store.db, await scopeOf({ store, mode }, account), key)
    return { scope, mode, keyId: key, model, from, to }
  }

  return {
    /** `GET /admin/usage` */
    usage: async ({ visit }: Call) => {
      const query = readQuery(visit.request, usageQuery)
      await bringUpToDate([])
      return reportUsage(store, await filterOf(query), query, 'operator')
    },

    /** `GET /admin/requests` */
    requests: async ({ visit }: Call) => {
      const query = readQuery(visit.request, requestsQuery)
      await bringUpToDate([])
      return reportRequests(store.db, await filterOf(query), query)
    },

    /** `GET /admin/requests/{id}`: with every attempt at a vendor. */
    request: async ({ id }: Call) => {
      await bringUpToDate([])
      const found = await requestById(store.db, { scope: 'every-account', id })
      if (found === undefined) throw absent('request')
      return { ...showRequest(found.request), attempts: found.attempts.map(showAttempt) }
    },

    /** `GET /admin/audit`: newest first. */
    audit: async ({ visit }: Call) => {
      const page = readQuery(visit.request, auditQuery)
      const asked = await rowsFor(page, 'record', (id) => placeOfAudit(store.db, id))
      return pageOf(await listAudit(store.db, asked), page.limit, showAudit, ({ id }) => id)
    },
  }
}
