import { z } from 'zod'
import { exactText, pageFields, periodFields, readQuery } from '../reports/query.ts'
import { eventStates, reportWebhook, reportWebhooks, storedState } from '../reports/webhooks.ts'
import { resendEvent } from '../store/webhooks.ts'
import { absent, type Call } from './call.ts'
import { scopeOf } from './filters.ts'
import type { AdminParts } from './routes.ts'

const listed = z.strictObject({
  ...pageFields,
  ...periodFields,
  account: exactText.exactOptional(),
  task: exactText.exactOptional(),
  state: z.enum(eventStates).exactOptional(),
})

export function webhookCalls({ store, mode, webhooks }: AdminParts) {
  return {
    /** `POST /admin/accounts/{id}/webhook-secret`: the only answer with the secret. The old one works a day longer. */
    newSecret: async ({ id, actor }: Call) => {
      const secret = await webhooks.secrets.replace(id, actor)
      if (secret === undefined) throw absent('account')
      return { secret }
    },

    /** `GET /admin/webhooks`: newest first, each with every attempt to deliver it. */
    list: async ({ visit }: Call) => {
      const { account, task, state, from, to, ...page } = readQuery(visit.request, listed)
      const filter = {
        scope: await scopeOf({ store, mode }, account),
        mode,
        taskId: task,
        state: state && storedState(state),
        from,
        to,
      }
      return reportWebhooks(store.db, filter, page)
    },

    /** `POST /admin/webhooks/{id}/resend`: sends an event again under the same id, whatever its state. */
    resend: async ({ id, actor }: Call) => {
      const event = await resendEvent(store, { id, actor })
      if (event === undefined) throw absent('webhook')
      webhooks.wake()
      return reportWebhook(store.db, event)
    },
  }
}
