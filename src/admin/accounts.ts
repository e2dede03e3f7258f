import { z } from 'zod'
import { badRequest, GatewayError, unreachable } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { formatDollars } from '../base/money.ts'
import { pageFields, pageOf, readQuery } from '../reports/query.ts'
import {
  accountById,
  changeAccount,
  createAccount,
  creditSourceIn,
  listAccounts,
  type AccountChanged,
} from '../store/accounts.ts'
import { absent, readCall, type Call } from './call.ts'
import { accountName, cap, firstCredit } from './fields.ts'
import { checkPlace } from './filters.ts'
import type { AdminParts } from './routes.ts'
import { showAccount } from './show.ts'

const newAccount = z.strictObject({
  name: accountName,
  credit: firstCredit.exactOptional(),
  unlimited: z.boolean().exactOptional(),
})
const changed = z.strictObject({
  name: accountName.exactOptional(),
  unlimited: z.boolean().exactOptional(),
  enabled: z.boolean().exactOptional(),
  cap: cap.nullable().exactOptional(),
})
const listed = z.strictObject({ ...pageFields, mode: z.enum(['sandbox', 'real']).exactOptional() })

export function accountCalls({ store, mode, bringUpToDate }: AdminParts) {
  return {
    /** `POST /admin/accounts`: in the mode that the gateway runs in. */
    create: async (call: Call) => {
      const { body } = await readCall(call, newAccount)
      const { name, credit, unlimited = false } = body
      const made = await createAccount(store, {
        id: newId('acc'),
        name,
        mode,
        actor: call.actor,
        unlimited,
        ...(credit !== undefined && { credit: { amount: credit, source: creditSourceIn(mode) } }),
      })
      if (made.outcome === 'name-taken') throw nameTaken()
      return showAccount(made.account)
    },

    /** `GET /admin/accounts`: by id. Those of the other mode with `?mode=`. */
    list: async ({ visit }: Call) => {
      const { limit, after, mode: of = mode } = readQuery(visit.request, listed)
      await checkPlace('accounts', store.db, after)
      const page = { limit: limit + 1, mode: of, ...(after !== undefined && { after }) }
      await bringUpToDate((await listAccounts(store.db, page)).map(({ id }) => id))
      // Read again: what was charged a moment ago is posted by now, and idle leases are given back.
      return pageOf(await listAccounts(store.db, page), limit, showAccount, ({ id }) => id)
    },

    /** `GET /admin/accounts/{id}` */
    read: async ({ id }: Call) => {
      // A node leases some of a balance in advance, and posts charges in batches: the rows alone would show as held what
      // nobody holds, and as balance what is spent already.
      await bringUpToDate([id])
      const account = await accountById(store.db, id)
      if (account === undefined) throw absent('account')
      return showAccount(account)
    },

    /** `PATCH /admin/accounts/{id}`: what is not named stays as it is; a cap of null is no cap. */
    change: async (call: Call) => {
      const { body } = await readCall(call, changed)
      if (body.unlimited === false) await bringUpToDate([call.id])
      return showChanged(await changeAccount(store, { ...body, id: call.id, actor: call.actor }))
    },
  }
}

function showChanged(outcome: AccountChanged) {
  switch (outcome.outcome) {
    case 'changed':
      return showAccount(outcome.account)
    case 'absent':
      throw absent('account')
    case 'name-taken':
      throw nameTaken()
    case 'below-zero': {
      const owed = formatDollars(outcome.available)
      throw badRequest(
        `The balance is $${owed}: credit the account before making it limited.`,
        'unlimited',
        'below_zero',
      )
    }
    default:
      return unreachable(outcome)
  }
}

function nameTaken(): GatewayError {
  // Clients try a 409 again of their own accord; this one stays.
  const message = 'There is an account of this name already.'
  return new GatewayError('conflict', message, { code: 'name_taken', param: 'name', shouldRetry: false })
}
