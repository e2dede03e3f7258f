import { z } from 'zod'
import { badRequest, GatewayError, unreachable } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { showDollars } from '../base/money.ts'
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
    /** `POST /admin/accounts`: makes an account of the mode that the gateway runs in. */
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

    /** `GET /admin/accounts`: in the order of their ids; `?mode=` gives those of the other mode. */
    list: async ({ visit }: Call) => {
      const { limit, after, mode: of = mode } = readQuery(visit.request, listed)
      await checkPlace('accounts', store.db, after)
      const page = { limit: limit + 1, mode: of, after }
      await bringUpToDate((await listAccounts(store.db, page)).map(({ id }) => id))
      // Read again, because by now recent charges are posted and idle leases are given back.
      return pageOf(await listAccounts(store.db, page), limit, showAccount, ({ id }) => id)
    },

    /** `GET /admin/accounts/{id}` */
    read: async ({ id }: Call) => {
      // A node leases part of a balance in advance, and posts charges in batches: the rows alone would show money as
      // held that no request holds, and money as balance that is already spent.
      await bringUpToDate([id])
      const account = await accountById(store.db, id)
      if (account === undefined) throw absent('account')
      return showAccount(account)
    },

    /** `PATCH /admin/accounts/{id}`: fields that are not given stay as they are; a cap of null removes the cap. */
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
      const [balance, held] = [showDollars(outcome.posted), showDollars(outcome.held)]
      const why =
        outcome.posted < 0n
          ? `The balance is ${balance}: credit the account before making it limited.`
          : `The balance is ${balance}, and ${held} is held: wait until less is held, or credit the account first.`
      throw badRequest(why, 'unlimited', 'below_zero')
    }
    default:
      return unreachable(outcome)
  }
}

function nameTaken(): GatewayError {
  // Clients retry a 409 by themselves, which is no use here.
  const message = 'There is an account of this name already.'
  return new GatewayError('conflict', message, { code: 'name_taken', param: 'name', shouldRetry: false })
}
