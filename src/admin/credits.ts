import { createHash } from 'node:crypto'
import { z } from 'zod'
import { asGatewayError, badRequest, GatewayError, unreachable } from '../base/errors.ts'
import { showDollars, zeroNano, type Nano } from '../base/money.ts'
import { pause } from '../base/pause.ts'
import { decodeUtf8 } from '../base/utf8.ts'
import type { Begun } from '../idempotency/idempotency.ts'
import { reportCredits } from '../reports/credits.ts'
import { pageFields, readQuery } from '../reports/query.ts'
import { accountById, credit, creditSourceIn } from '../store/accounts.ts'
import { absent, readCall, type Call } from './call.ts'
import { creditNote, dollars } from './fields.ts'
import type { AdminParts } from './routes.ts'
import { showAccount } from './show.ts'

const newCredit = z.strictObject({
  amount: dollars.refine((amount) => amount !== zeroNano, 'a credit of nothing changes nothing'),
  note: creditNote.exactOptional(),
})

const listed = z.strictObject(pageFields)

export function creditCalls(parts: AdminParts) {
  const { store, bringUpToDate } = parts

  async function book(call: Call, body: { amount: Nano; note?: string }, id: string | undefined) {
    const account = await accountById(store.db, call.id)
    if (account === undefined) throw absent('account')
    // Idle leased money goes back to the balance and can be deducted; what is already charged leaves it, and cannot.
    if (body.amount < 0n) await bringUpToDate([call.id])
    const outcome = await credit(store, {
      ...body,
      accountId: call.id,
      source: creditSourceIn(account.mode),
      actor: call.actor,
      ...(id !== undefined && { id }),
    })
    switch (outcome.outcome) {
      case 'credited':
      case 'repeated':
        return showAccount(outcome.account)
      case 'absent':
        throw absent('account')
      case 'conflict':
        throw new GatewayError('idempotency-mismatch', 'This Idempotency-Key was used for another credit.')
      case 'below-zero': {
        const most = showDollars(outcome.available)
        throw badRequest(`Only ${most} can be taken from this account.`, 'amount', 'below_zero')
      }
      default:
        return unreachable(outcome)
    }
  }

  /** `POST /admin/accounts/{id}/credits`. With an Idempotency-Key a credit is booked once, however often it is sent. */
  async function add(call: Call) {
    const { body, canonicalBytes } = await readCall(call, newCredit)
    const key = call.visit.request.headers.get('idempotency-key')
    if (key === null) return book(call, body, undefined)
    // The id of the booking is derived from the key, so that it is booked once even if a crash lost the stored answer.
    const id = bookingId(call.id, key)
    const begun = await beginPatiently(parts, call, key, canonicalBytes)
    if (begun.kind === 'answer-lost') return book(call, body, id)
    if (begun.kind === 'failed') throw begun.failure
    if (begun.kind === 'replay') {
      call.visit.responseHeaders['idempotent-replayed'] = 'true'
      return JSON.parse(decodeUtf8(begun.body)) as unknown
    }
    try {
      const shown = await book(call, body, id)
      await begun.record.keep(200, Buffer.from(JSON.stringify(shown)))
      return shown
    } catch (thrown) {
      await begun.record.free()
      throw thrown
    }
  }

  /** `GET /admin/accounts/{id}/credits`: the account's credits in the ledger, newest first. */
  async function list({ visit, id }: Call) {
    const page = readQuery(visit.request, listed)
    if ((await accountById(store.db, id)) === undefined) throw absent('account')
    return reportCredits(store.db, id, page)
  }

  return { add, list }
}

const patienceMs = 2_000
const pauseMs = 20

/** A credit takes milliseconds, so a call that repeats a running one waits for its answer instead of getting a 409. */
async function beginPatiently(
  { idempotency }: AdminParts,
  call: Call,
  key: string,
  body: Uint8Array,
): Promise<Begun | { kind: 'answer-lost' }> {
  const { requestId, path } = call.visit
  const giveUpAt = performance.now() + patienceMs
  for (;;) {
    try {
      return await idempotency.begin({ accountId: call.id, path, key, body, requestId })
    } catch (thrown) {
      const { kind, details } = asGatewayError(thrown)
      if (kind === 'conflict' && details.code === 'already_completed') return { kind: 'answer-lost' }
      const isRunning = kind === 'conflict' && details.code === 'idempotency_in_progress'
      if (!isRunning || performance.now() > giveUpAt) throw thrown
    }
    await pause(pauseMs)
  }
}

const idHexDigits = 32

function bookingId(accountId: string, key: string): string {
  return `txn_${createHash('sha256').update(`${accountId}/${key}`).digest('hex').slice(0, idHexDigits)}`
}
