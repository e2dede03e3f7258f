import { expect, test } from 'bun:test'
import { sql, type KyselyPlugin } from 'kysely'
import { GatewayError } from '../base/errors.ts'
import { newRequestId } from '../base/ids.ts'
import { makeLog } from '../base/log.ts'
import { nano } from '../base/money.ts'
import { pause } from '../base/pause.ts'
import { reclaimNode } from '../store/leases.ts'
import { takeHold } from '../store/holds.ts'
import { beginAnswer, cancelUncertainAnswer, closeAbandoned, dropOldAnswers } from '../store/idempotency.ts'
import { settleHold, voidHold } from '../store/ledger.ts'
import type { Store } from '../store/open.ts'
import { openNode } from '../store/turns.ts'
import { eachEngine } from '../../test/support/engines.ts'
import { flakyStore } from '../../test/support/flaky-store.ts'
import { until } from '../../test/support/gateway.ts'
import { accountId, attemptOf, fundedAccount, holdOf, requestOf, settlementOf } from '../../test/support/ledger.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import type { LongAnswers } from './answer-bodies.ts'
import { Idempotency } from './idempotency.ts'

// Answers are short here. For long ones see test/faults/idempotency.test.ts.
const none = { keepPrivate: () => Promise.resolve(undefined), readPrivate: () => Promise.resolve(undefined) }

const long = Buffer.alloc(2 * 1024 * 1024, '0')
const storingBytesMax = 1.5 * long.length
const accountBytesMax = 1_000

eachEngine('answers kept under an Idempotency-Key', (open, _, engine) => {
  const begin = async (longAnswers: LongAnswers = none, closeMsMax = 60_000) => {
    const flaky = flakyStore(await open())
    const { store } = flaky
    await fundedAccount(store)
    const logged: string[] = []
    const parts = {
      store,
      secret: Buffer.alloc(32, 1),
      node: 'node_a',
      longAnswers,
      log: makeLog({ level: 'info', write: (line) => logged.push(line) }),
      storingBytesMax,
      accountBytesMax,
      closeMsMax,
    }
    const idempotency = new Idempotency(parts)
    const body = Buffer.from('{}')
    const usual = { accountId, path: '/v1/videos/generations', key: 'once', body }
    const ask = (by: Partial<typeof usual> = {}) => idempotency.begin({ ...usual, ...by, requestId: newRequestId() })
    const begun = await ask()
    if (begun.kind !== 'begun') throw new Error('somebody was here before')
    return { flaky, store, ask, attempt: begun.record, close: () => idempotency.close(), logged }
  }
  const completed = { details: { code: 'already_completed' } }

  test('an answer kept in a commit survives later failures of its request', async () => {
    const { store, ask, attempt } = await begin()
    await store.transaction((tx) => attempt.keepIn(tx, 202, '{"id":"vid_1"}'))
    await attempt.keepFact(500)
    await attempt.keepFailure(new GatewayError('upstream-failed', 'It broke off.'))
    expect(await ask()).toMatchObject({ kind: 'replay', status: 202, body: Buffer.from('{"id":"vid_1"}') })
  })

  test('a failure is replayed without its internal details', async () => {
    const { store, ask, attempt } = await begin()
    const details = { code: 'upstream_failed', shouldRetry: false } as const
    const inside = { status: 500, body: 'sk-of-ours' }
    await attempt.keepFailure(new GatewayError('upstream-failed', 'It broke off.', { ...details, inside, cause: 1 }))
    const begun = await ask()
    if (begun.kind !== 'failed') throw new Error('no failure was kept')
    const { kind, message, details: told } = begun.failure
    expect([kind, message, told]).toEqual(['upstream-failed', 'It broke off.', details])
    // The previous version replays every row with a status and a body; without a status it answers `already_completed`.
    expect(await store.db.selectFrom('idempotency').select('status').execute()).toEqual([{ status: null }])
  })

  test('answers are kept apart by account, path and key', async () => {
    const { store, ask, attempt } = await begin()
    await fundedAccount(store, { id: 'acc_b' })
    await attempt.keep(200, Buffer.from('first'))
    const others = [{ accountId: 'acc_b' }, { path: '/v1/embeddings' }, { key: 'twice' }]
    for (const by of others) {
      const begun = await ask(by)
      if (begun.kind !== 'begun') throw new Error('it is another’s')
      await begun.record.keep(200, Buffer.from(JSON.stringify(by)))
    }
    for (const by of others) expect(await ask(by)).toMatchObject({ body: Buffer.from(JSON.stringify(by)) })
    expect(await ask()).toMatchObject({ body: Buffer.from('first') })
    await attempt.free()
    for (const by of others) expect(await ask(by)).toMatchObject({ kind: 'replay' })
    expect(await ask()).toMatchObject({ kind: 'begun' })
    // An attempt whose key was freed cannot end the attempt that began after it.
    for (const late of [
      () => attempt.free(),
      () => attempt.keepFact(200),
      () => attempt.keep(200, Buffer.from('{}')),
    ]) {
      await late()
      expect(await thrownBy(ask())).toMatchObject({ details: { code: 'idempotency_in_progress' } })
    }
  })

  test('an answer is remembered for a day, after which its key begins anew', async () => {
    const { store, ask, attempt } = await begin()
    await attempt.keep(200, Buffer.from('{}'))
    const day = 24 * 3_600_000
    const made = (at: number) => store.db.updateTable('idempotency').set({ created_at: at }).execute()
    await made(store.now() - day + 60_000)
    expect(await ask()).toMatchObject({ kind: 'replay' })
    await made(store.now() - day - 1)
    expect(await ask()).toMatchObject({ kind: 'begun' })
  })

  test('a request kept without its answer is reported as already completed', async () => {
    const { ask, attempt } = await begin()
    await attempt.keepFact(500)
    expect(await thrownBy(ask())).toMatchObject(completed)
  })

  test.each(['free', 'freeIn'] as const)(
    'a freed key can be used again, even after its answer was kept (%s)',
    async (how) => {
      const { store, ask, attempt } = await begin()
      await store.transaction((tx) => attempt.keepIn(tx, 202, '{}'))
      if (how === 'free') await attempt.free()
      else await store.transaction((tx) => attempt.freeIn(tx))
      expect(await ask()).toMatchObject({ kind: 'begun' })
    },
  )

  // On SQLite no other request gets in between.
  test.skipIf(engine === 'sqlite')(
    'a key that is freed while another request asks for it is begun by that request',
    async () => {
      const { store, ask, attempt } = await begin()
      const inserts = new Set<unknown>()
      const between: KyselyPlugin = {
        transformQuery({ node, queryId }) {
          if (node.kind === 'InsertQueryNode') inserts.add(queryId)
          return node
        },
        async transformResult({ queryId, result }) {
          if (inserts.delete(queryId)) await attempt.free()
          return result
        },
      }
      const usual = { ...store }
      store.transaction = (work) => usual.transaction((tx) => work(tx.withPlugin(between)))
      expect(await ask()).toMatchObject({ kind: 'begun' })
    },
  )

  test('an answer that there is no room for is reported as already completed', async () => {
    const { ask, attempt } = await begin()
    await attempt.keep(200, long)
    expect(await thrownBy(ask())).toMatchObject(completed)
  })

  test('an account that has stored much in a day keeps only the fact that its requests happened', async () => {
    const { store, ask, attempt } = await begin()
    await fundedAccount(store, { id: 'acc_b' })
    const answer = Buffer.alloc(accountBytesMax - 2, '1')
    const keptAs = async (by: Parameters<typeof ask>[0], body: Uint8Array) => {
      const begun = await ask(by)
      if (begun.kind !== 'begun') throw new Error('it is another’s')
      await begun.record.keep(200, body)
      return ask(by).then(
        ({ kind }) => kind,
        (thrown: GatewayError) => thrown.details.code,
      )
    }
    await attempt.keep(200, answer)
    expect(await ask()).toMatchObject({ kind: 'replay', body: answer })
    expect(await keptAs({ key: 'too-much' }, Buffer.from('{"a":1}'))).toBe('already_completed')
    expect(await keptAs({ key: 'little' }, Buffer.from('{}'))).toBe('replay')
    expect(await keptAs({ accountId: 'acc_b' }, answer)).toBe('replay')
    const tomorrow = store.now() + 24 * 3_600_000
    store.now = () => tomorrow
    expect(await keptAs({ key: 'tomorrow' }, answer)).toBe('replay')
  })

  test('long answers do not pile up in memory while they are slow to be stored', async () => {
    const onTheWay: { readonly bytes: number; arrive(): void }[] = []
    const keepPrivate = ({ length: bytes }: Uint8Array) =>
      new Promise<undefined>((resolve) => onTheWay.push({ bytes, arrive: () => resolve(undefined) }))
    const { ask, attempt } = await begin({ ...none, keepPrivate: keepPrivate })
    await attempt.keep(200, long)
    await until(() => onTheWay.length === 1)
    await attempt.keep(200, Buffer.concat([long, Buffer.from('second')]))
    expect(await thrownBy(ask())).toMatchObject(completed)
    onTheWay[0]?.arrive()
    await until(async () => {
      await attempt.keep(200, long)
      return onTheWay.length > 1
    })
    expect(onTheWay[1]?.bytes).toBe(onTheWay[0]?.bytes)
  })

  test.each(['an answer', 'that the request has ended', 'that the key is free'] as const)(
    'the store records %s once the database is back',
    async (what) => {
      const { flaky, ask, attempt } = await begin()
      flaky.isAway = true
      if (what === 'an answer') await attempt.keep(200, Buffer.from('{}'))
      else if (what === 'that the request has ended') await attempt.keepFact(500)
      else await attempt.free()
      flaky.isAway = false
      const running = { details: { code: 'idempotency_in_progress' } }
      expect(await thrownBy(ask())).toMatchObject(running)
      const found = () =>
        ask().then(
          ({ kind }) => kind,
          (thrown: GatewayError) => thrown.details.code,
        )
      await until(async () => (await found()) !== 'idempotency_in_progress')
      // Where the key was free, the last look has begun the request.
      const kept = {
        'an answer': 'replay',
        'that the request has ended': 'already_completed',
        'that the key is free': 'idempotency_in_progress',
      }
      expect(await found()).toBe(kept[what])
    },
  )

  test.each(['answersToLose', 'commitsToLose'] as const)(
    'a beginning that is in doubt counts as not begun: %s',
    async (doubt) => {
      const { flaky, ask, attempt } = await begin()
      await attempt.free()
      Object.assign(flaky, { [doubt]: 1, staysAway: true })
      expect(await thrownBy(ask())).toMatchObject({ kind: 'overloaded', details: { retryAfterSeconds: 1 } })
      flaky.isAway = false
      const begun = () => ask().catch(() => undefined)
      await until(async () => (await begun())?.kind === 'begun')
    },
  )

  test('a stop records what the database missed, and logs what it cannot record', async () => {
    const back = await begin()
    back.flaky.isAway = true
    await back.attempt.keepFact(500)
    back.flaky.isAway = false
    await back.close()
    expect(await thrownBy(back.ask())).toMatchObject(completed)

    const away = await begin()
    away.flaky.isAway = true
    await away.attempt.keepFact(500)
    await away.close()
    expect(away.logged.join('')).toContain('the node stops before it could be recorded')
    // After a stop nothing is tried again, and the log says so.
    await away.attempt.keepFact(500)
    expect(away.logged.join('')).toContain('it will not be recorded')
  })

  test('a stop waits for a long answer to be stored, but not for ever', async () => {
    const arrived = Promise.withResolvers<string>()
    const kept: Uint8Array[] = []
    const { ask, attempt, close } = await begin({
      keepPrivate(bytes) {
        kept.push(bytes)
        return arrived.promise
      },
      readPrivate: () => Promise.resolve(kept[0]),
    })
    await attempt.keep(200, long)
    const closed = close()
    await until(() => kept.length === 1)
    arrived.resolve('a name')
    await closed
    expect(await ask()).toMatchObject({ kind: 'replay', status: 200 })

    const hanging = await begin({ ...none, keepPrivate: () => new Promise(() => {}) }, 1)
    await hanging.attempt.keep(200, long)
    await hanging.close()
    expect(await thrownBy(hanging.ask())).toMatchObject(completed)
    expect(JSON.parse(hanging.logged.join(''))).toMatchObject({
      count: 1,
      msg: expect.stringContaining('the node stops'),
    })
  })

  test('a charged request that was left running is completed at the next start of its node', async () => {
    const { store, ask } = await begin()
    const { request_id: id } = await store.db.selectFrom('idempotency').select('request_id').executeTakeFirstOrThrow()
    await takeHold(store, holdOf('hold_1', 100n))
    await settleHold(store, settlementOf('hold_1', 5n, { request: requestOf('', { id }) }))
    await closeAbandoned(store, 'node_b', [])
    expect(await thrownBy(ask())).toMatchObject({ details: { code: 'idempotency_in_progress' } })
    await closeAbandoned(store, 'node_a', [])
    expect(await thrownBy(ask())).toMatchObject(completed)
  })

  test.each([
    ['is completed if a vendor was paid for it', { status: 200, vendorCost: nano(7n) }, completed],
    ['is completed if a vendor may have begun it', { status: 0, vendorCost: nano(0n) }, completed],
    ['is completed if a vendor gave an unreadable answer', { status: 200, vendorCost: nano(0n) }, completed],
    ['frees its key if every vendor refused it', { status: 429, vendorCost: nano(0n) }, undefined],
  ])('a failed request that was left running %s', async (_, ended, found) => {
    const { store, ask } = await begin()
    const { request_id: id } = await store.db.selectFrom('idempotency').select('request_id').executeTakeFirstOrThrow()
    // What another request cost says nothing about this one.
    await takeHold(store, holdOf('hold_0', 100n))
    await settleHold(store, settlementOf('hold_0', 5n, { attempts: [attemptOf('0', 7n)] }))
    await takeHold(store, holdOf('hold_1', 100n))
    const attempts = [attemptOf('1', 0n, { ...ended, delivered: false })]
    await voidHold(store, { hold: { id: 'hold_1', accountId }, request: requestOf('', { id, status: 502 }), attempts })
    await closeAbandoned(store, 'node_a', [])
    if (found === undefined) expect(await ask()).toMatchObject({ kind: 'begun' })
    else expect(await thrownBy(ask())).toMatchObject(found)
  })

  test('a request left running is completed once its node is reclaimed', async () => {
    const { store, ask } = await begin()
    await openNode(store, 'node_a', [])
    const reclaim = (silentSince: number) => reclaimNode(store, { node: 'node_a', silentSince, actor: 'test' })
    expect(await reclaim(0)).toMatchObject({ outcome: 'alive' })
    expect(await thrownBy(ask())).toMatchObject({ details: { code: 'idempotency_in_progress' } })
    expect(await reclaim(Number.MAX_SAFE_INTEGER)).toMatchObject({ outcome: 'reclaimed' })
    expect(await thrownBy(ask())).toMatchObject(completed)
  })

  test('a beginning that is cancelled while its commit is on its way is not there afterwards', async () => {
    const { store } = await begin()
    const id = { accountId, path: '/v1/videos/generations', keyDigest: 'uncertain' }
    const begun = { fingerprint: 'f', requestId: newRequestId(), node: 'node_a', keepMs: 1_000 }
    const [written, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    const slow: Store = {
      ...store,
      transaction: (work) =>
        store.transaction(async (tx) => {
          const done = await work(tx)
          written.resolve()
          await commit.promise
          return done
        }),
    }
    const beginning = beginAnswer(slow, id, begun, () => {})
    await written.promise
    const cancelled = cancelUncertainAnswer(store, id, begun)
    const isWaiting = await Promise.race([cancelled.then(() => false), pause(50).then(() => true)])
    commit.resolve()
    expect(await beginning).toBe('begun')
    await cancelled
    expect(isWaiting).toBe(true)
    const rows = await store.db.selectFrom('idempotency').select('key_digest').execute()
    expect(rows.map(({ key_digest: digest }) => digest)).not.toContain('uncertain')
  })

  test('a request left running is found among tens of thousands of other rows', async () => {
    const { store, ask } = await begin()
    const { created_at: at } = await store.db.selectFrom('idempotency').select('created_at').executeTakeFirstOrThrow()
    // More rows than one batch, before and after the row in question, and many with the same time.
    await sql`insert into idempotency
        (account_id, path, key_digest, fingerprint, state, request_id, node, status, sealed_body, created_at)
      with recursive n (i) as (select 1 union all select i + 1 from n where i < 60000)
      select ${accountId}, '/v1/embeddings', cast(i as text), '', 'done', 'req', 'node_a', 200, null,
        cast(${at} as bigint) + i / 5 - 6000
      from n`.execute(store.db)
    await closeAbandoned(store, 'node_a', [])
    expect(await ask()).toMatchObject({ kind: 'begun' })
    await closeAbandoned(store, 'node_a', 'all')
    expect(await thrownBy(ask())).toMatchObject(completed)
    const kept = store.db.selectFrom('idempotency').select((eb) => eb.fn.countAll<bigint>().as('rows'))
    expect(Number((await kept.executeTakeFirstOrThrow()).rows)).toBe(60_001)
  })

  test('answers older than promised are dropped in small batches', async () => {
    const { store, ask, attempt } = await begin()
    await attempt.keepFact(200)
    await sql`insert into idempotency
        (account_id, path, key_digest, fingerprint, state, request_id, node, status, sealed_body, created_at)
      with recursive n (i) as (select 1 union all select i + 1 from n where i < 12000)
      select ${accountId}, '/v1/embeddings', cast(i as text), '', 'done', 'req', 'node_a', 200, null, case when i < 400 then 0 else i / 3 end
      from n`.execute(store.db)
    // Each row may be a megabyte, and no statement may take long. Rows with the same time are dropped together.
    const dropped: number[] = []
    const counted = store.db.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult({ result }) {
        if (result.numAffectedRows !== undefined) dropped.push(Number(result.numAffectedRows))
        return Promise.resolve(result)
      },
    })
    await dropOldAnswers(counted, 3_999)
    expect(Math.max(...dropped.slice(1))).toBeLessThanOrEqual(25)
    const rows = await store.db.selectFrom('idempotency').select('created_at').orderBy('created_at').execute()
    expect(rows.slice(0, -1).map(({ created_at: at }) => at)).toEqual([3_999, 3_999, 3_999, 4_000])
    expect(await thrownBy(ask())).toMatchObject(completed)
  })
})
