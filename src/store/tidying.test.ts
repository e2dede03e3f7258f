import { expect, test } from 'bun:test'
import { sql } from 'kysely'
import { makeLog } from '../base/log.ts'
import { eachEngine } from '../../test/support/engines.ts'
import { flakyStore } from '../../test/support/flaky-store.ts'
import { until } from '../../test/support/gateway.ts'
import { handTimers } from '../../test/support/hand-timers.ts'
import { accountId, fundedAccount, holdOf } from '../../test/support/ledger.ts'
import { takeHold } from './holds.ts'
import { recoverHolds } from './ledger.ts'
import type { Store } from './open.ts'
import { startTidying } from './tidying.ts'

const keepAnswersMs = 1_000

async function left(store: Store) {
  const { state } = await store.db.selectFrom('hold').select('state').executeTakeFirstOrThrow()
  return { state, answers: (await store.db.selectFrom('idempotency').select('path').execute()).length }
}

eachEngine('the tidying of overdue holds and answers', (open) => {
  async function begin(isAtWork: (holdId: string) => boolean = () => false) {
    const flaky = flakyStore(await open({ clock: { now: () => 10_000 } }))
    const { store } = flaky
    await fundedAccount(store)
    await takeHold(store, holdOf('hold_1', 100n, { deadline: 500 }))
    await sql`insert into idempotency
        (account_id, path, key_digest, fingerprint, state, request_id, node, status, sealed_body, created_at)
      values (${accountId}, '/v1/embeddings', 'once', '', 'done', 'req', 'node_a', 200, null, 1)`.execute(store.db)
    const timers = handTimers()
    const logged: string[] = []
    const log = makeLog({ level: 'info', write: (line) => logged.push(line) })
    const stop = startTidying({ store, timers, log, keepAnswersMs, isAtWork })
    const round = async () => {
      timers.fire()
      await until(() => timers.waiting.length === 2)
    }
    return { flaky, store, timers, logged, stop, round }
  }

  test('overdue holds and old answers are removed every minute, one round at a time', async () => {
    const { store, timers, logged, stop, round } = await begin()
    expect(timers.waiting).toEqual([60_000, 60_000])
    timers.fire()
    expect(timers.waiting).toEqual([])
    await until(() => timers.waiting.length === 2)
    expect(await left(store)).toEqual({ state: 'void', answers: 0 })
    await round()
    expect(logged).toEqual([])
    stop()
    expect(timers.waiting).toEqual([])
  })

  test('an answer is kept for as long as was promised, so that a repeated request is not paid twice', async () => {
    const { store, stop, round } = await begin()
    await sql`update idempotency set created_at = ${10_000 - keepAnswersMs}`.execute(store.db)
    await round()
    expect(await left(store)).toMatchObject({ answers: 1 })
    stop()
  })

  test('an overdue hold that is in use is left open', async () => {
    const atWork = new Set(['hold_1'])
    const { store, stop, round } = await begin((holdId) => atWork.has(holdId))
    await round()
    expect(await left(store)).toMatchObject({ state: 'open' })
    atWork.clear()
    await round()
    expect(await left(store)).toMatchObject({ state: 'void' })
    stop()
  })

  test('a round that fails is logged and tried again', async () => {
    const { flaky, store, logged, stop, round } = await begin()
    flaky.isAway = true
    await round()
    flaky.isAway = false
    expect(logged).toHaveLength(2)
    expect(logged.join('')).toContain('Connection terminated unexpectedly')
    expect(await left(store)).toEqual({ state: 'open', answers: 1 })
    await round()
    expect(await left(store)).toEqual({ state: 'void', answers: 0 })
    stop()
  })

  test('a hold that cannot be voided is logged by its id and tried again', async () => {
    const { store, logged, stop, round } = await begin()
    await sql`update account set held = 0`.execute(store.db)
    await round()
    expect(logged).toHaveLength(1)
    expect(logged.join('')).toContain('hold_1')
    await sql`update account set held = 100`.execute(store.db)
    await round()
    expect((await left(store)).state).toBe('void')
    expect(logged).toHaveLength(1)
    stop()
  })

  test('a failure to void holds does not keep old answers from being removed', async () => {
    const { flaky, store, logged, stop, round } = await begin()
    flaky.answersToLose = 1 // the answer about the hold
    await round()
    expect(logged).toHaveLength(1)
    expect((await left(store)).answers).toBe(0)
    stop()
  })

  test('after a stop, a round under way logs nothing and sets no timer', async () => {
    const { flaky, store, timers, logged, stop } = await begin()
    flaky.isAway = true
    timers.fire()
    stop()
    const before = [...logged]
    flaky.isAway = false
    await recoverHolds(store, { now: 10_000 })
    expect([logged, timers.waiting]).toEqual([before, []])
  })
})
