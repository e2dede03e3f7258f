import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Clock, systemClock, systemTimers, type Timers } from '../../base/clock.ts'
import { newRequestId } from '../../base/ids.ts'
import { makeLog, silentLog, type Log } from '../../base/log.ts'
import { nano } from '../../base/money.ts'
import { handTimers } from '../../../test/support/hand-timers.ts'
import { attemptOf, fundedAccount } from '../../../test/support/ledger.ts'
import { memoryDisk } from '../../../test/support/memory-disk.ts'
import { standingClock } from '../../../test/support/movable-clock.ts'
import { until } from '../../../test/support/gateway.ts'
import { accountById } from '../../store/accounts.ts'
import { checkLedger } from '../../store/check.ts'
import { reclaimNode } from '../../store/leases.ts'
import { openStore } from '../../store/open.ts'
import type { Hold } from '../billing.ts'
import { BankUnavailable, makeStoreBank, type Bank } from './bank.ts'
import { openDisk, type Disk } from './disk.ts'
import { openLeasedBilling, type LeasedBilling } from './leased.ts'

/** Resolves once everything has happened that needs no timer, disk or socket. */
const everythingElse = () => new Promise((resolve) => setImmediate(resolve))

/** Timers that never fire: what is settled stays in the journal until a test asks for a turn. */
const never: Timers = { after: () => () => {} }
const soon: Timers = { after: (_ms, run) => systemTimers.after(0, run) }

const leftovers: (() => unknown)[] = []
afterEach(async () => {
  for (const remove of leftovers.splice(0)) await remove()
})

const balance = 1_000_000_000n
const price = 20n

async function makeBooks() {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-teller-'))
  const store = await openStore({ file: ':memory:' })
  leftovers.push(
    () => store.close(),
    () => rmSync(folder, { recursive: true, force: true }),
  )
  const accountId = await fundedAccount(store, { amount: balance })
  return {
    store,
    accountId,
    open: (
      bank = makeStoreBank(store),
      timers = never,
      disk = openDisk(folder),
      log = silentLog,
      clock = systemClock,
      unpostedMax?: number,
    ) => openOn(bank, timers, disk, log, clock, unpostedMax),
  }
}

function openOn(
  bank: Bank,
  timers: Timers,
  disk: Disk,
  log: Log,
  clock: Clock,
  unpostedMax: number | undefined,
): Promise<LeasedBilling> {
  return openLeasedBilling({
    node: 'node_a',
    bank,
    disk,
    clock,
    timers,
    log,
    sync: 'interval',
    fatal() {},
    unpostedMax,
  })
}

async function hold(billing: LeasedBilling, accountId: string, amount = 50_000n): Promise<Hold> {
  const taken = await billing.take({
    requestId: newRequestId(),
    accountId,
    keyId: 'key_a',
    model: 'gpt-x',
    capability: 'chat',
    // Usually so much more than the price that one lease lasts for a whole test.
    amount: nano(amount),
    caps: [],
    priceVersion: 'v1',
    startedAt: 0,
    deadline: 1,
  })
  if (taken.kind !== 'hold') throw new Error(taken.kind)
  return taken.hold
}

async function sell(billing: LeasedBilling, accountId: string, at: number): Promise<void> {
  const held = await hold(billing, accountId)
  const attempt = attemptOf(String(at), 10n)
  const { id, channel, vendor, upstreamModel, createdAt } = attempt
  await held.sending({ id, channel, vendor, upstreamModel, createdAt })
  const ending = { status: 200, streamed: false, durationMs: 1, attempts: [attempt] }
  await held.settle({ ...ending, basis: 'vendor', usage: { output: 1 }, price: nano(price) })
}

test('post() posts everything that waits, over as many turns as it takes', async () => {
  const { store, accountId, open } = await makeBooks()
  const bank = makeStoreBank(store)
  const held = Promise.withResolvers<void>()
  const slow: Bank = {
    ...bank,
    async turn(identity, turn) {
      if (turn.postings.length > 0) await held.promise
      return bank.turn(identity, turn)
    },
  }
  const billing = await open(slow)
  // Postings for three more turns wait for the first: each turn begins when the one before it ends.
  const sales = 1_600
  for (let sale = 0; sale < sales; sale++) await sell(billing, accountId, sale)
  const posted = billing.post()
  held.resolve()
  await posted
  expect(await accountById(store.db, accountId)).toMatchObject({ posted: balance - price * BigInt(sales), held: 0n })
  expect(await checkLedger(store)).toEqual([])
  await billing.close()
})

test('a node keeps taking turns while it has an open hold, though nothing ends for minutes', async () => {
  const { store, accountId, open } = await makeBooks()
  const bank = makeStoreBank(store)
  const [clock, timers] = [standingClock(), handTimers()]
  let turns = 0
  const counted: Bank = {
    ...bank,
    turn(identity, turn) {
      turns++
      return bank.turn(identity, turn)
    },
  }
  const billing = await open(counted, timers, memoryDisk(), silentLog, clock)
  const turnsIn = async (seconds: number) => {
    const before = turns
    for (let second = 0; second < seconds; second++) {
      clock.advance(1_000)
      timers.fire()
      // Waits for a turn that has begun; there is nothing else to post.
      await billing.bringUpToDate([])
    }
    return turns - before
  }
  const held = await hold(billing, accountId)
  await turnsIn(10) // in which the unused part of the lease is given back
  expect(await turnsIn(120)).toBe(6)
  await held.release({ status: 502, streamed: false, durationMs: 1, attempts: [] })
  await turnsIn(10)
  expect(await turnsIn(120)).toBe(0)
  await billing.close()
})

test('a hold that ends during a turn pays for a request that the turn alone does not serve', async () => {
  const { store, accountId, open } = await makeBooks()
  const bank = makeStoreBank(store)
  let whileUnderWay: (() => Promise<void>) | undefined
  const slow: Bank = {
    ...bank,
    async turn(identity, turn) {
      const grants = await bank.turn(identity, turn)
      await whileUnderWay?.()
      return grants
    },
  }
  const billing = await open(slow)
  const ending = { status: 502, streamed: false, durationMs: 1, attempts: [] }
  const first = await hold(billing, accountId, balance / 2n)
  whileUnderWay = () => first.release(ending)
  const second = await hold(billing, accountId, (balance * 3n) / 4n)
  await second.release(ending)
  await billing.close()
})

test('the log says why the ledger cannot be reached', async () => {
  const { store, accountId, open } = await makeBooks()
  const bank = makeStoreBank(store)
  let refusals = 0
  const full: Bank = {
    ...bank,
    turn(identity, turn) {
      if (turn.postings.length === 0 || refusals++ > 0) return bank.turn(identity, turn)
      throw new BankUnavailable(new Error('database or disk is full'))
    },
  }
  const logged: string[] = []
  const billing = await open(full, soon, memoryDisk(), makeLog({ level: 'info', write: (line) => logged.push(line) }))
  await sell(billing, accountId, 0)
  await until(async () => (await accountById(store.db, accountId))?.posted === balance - price)
  expect(logged.map((line) => (JSON.parse(line) as { cause?: string }).cause)).toEqual([
    'the database cannot be reached: Error: database or disk is full',
    undefined,
  ])
  await billing.close()
})

test('a node that goes on with a database that lacks its last turns says so in the log', async () => {
  const { store, accountId, open } = await makeBooks()
  const bank = makeStoreBank(store)
  let refusals = 0
  const failedOver: Bank = {
    ...bank,
    async turn(identity, turn) {
      if (turn.postings.length === 0 || refusals++ > 0) return bank.turn(identity, turn)
      await store.db.updateTable('node').set({ turn: 0 }).execute()
      throw new BankUnavailable(new Error('Connection terminated unexpectedly'))
    },
  }
  const logged: string[] = []
  const log = makeLog({ level: 'error', write: (line) => logged.push(line) })
  const billing = await open(failedOver, soon, memoryDisk(), log)
  await sell(billing, accountId, 0)
  await until(async () => (await accountById(store.db, accountId))?.posted === balance - price)
  expect(logged.at(-1)).toContain('the database lacks what this node had committed')
  await billing.close()
})

const readOnly = () => new BankUnavailable(new Error('cannot execute UPDATE in a read-only transaction'))

test('requests that use no lease up are refused once too many endings wait to be posted, and admitted after that', async () => {
  const { store, accountId, open } = await makeBooks()
  const bank = makeStoreBank(store)
  let isReadOnly = false
  const sometimes: Bank = {
    ...bank,
    turn(identity, turn) {
      if (isReadOnly) throw readOnly()
      return bank.turn(identity, turn)
    },
    resolveLostTurn(identity, turn) {
      if (isReadOnly) throw readOnly()
      return bank.resolveLostTurn(identity, turn)
    },
  }
  const timers = handTimers()
  const unpostedMax = 3
  const billing = await open(sometimes, timers, memoryDisk(), silentLog, systemClock, unpostedMax)
  const endings = () => (billing.endings?.made ?? 0) - (billing.endings?.booked ?? 0)
  const failOne = async (amount: bigint) => {
    const held = await hold(billing, accountId, amount)
    await held.release({ status: 502, streamed: false, durationMs: 1, attempts: [] })
  }
  await failOne(50_000n)
  await billing.bringUpToDate([])
  isReadOnly = true
  for (const amount of [0n, 50_000n, 0n]) await failOne(amount)
  timers.fire()
  for (const amount of [0n, 50_000n]) {
    expect(hold(billing, accountId, amount)).rejects.toMatchObject({ kind: 'overloaded' })
  }
  expect(endings()).toBe(unpostedMax)
  isReadOnly = false
  await until(() => {
    timers.fire()
    return endings() === 0
  })
  await failOne(50_000n)
  await billing.close()
})

test('endings that arrive during a turn wait for the timer and are not posted when the turn ends', async () => {
  const { store, accountId, open } = await makeBooks()
  const bank = makeStoreBank(store)
  const timers = handTimers()
  const turns: number[] = []
  const ends: PromiseWithResolvers<void>[] = []
  let turnsOver = 0
  const slow: Bank = {
    ...bank,
    async turn(identity, turn) {
      if (turn.postings.length > 0) {
        turns.push(turn.postings.length)
        const end = Promise.withResolvers<void>()
        ends.push(end)
        await end.promise
      }
      const grants = await bank.turn(identity, turn)
      turnsOver++
      return grants
    },
  }
  // A disk in memory needs no waiting, so that a turn that begins at once has begun by the time the test looks.
  const billing = await open(slow, timers, memoryDisk())
  await sell(billing, accountId, 1)
  timers.fire()
  await until(() => turns.length === 1)
  const before = turnsOver
  for (const at of [2, 3]) await sell(billing, accountId, at)
  ends[0]?.resolve()
  await until(() => turnsOver > before)
  await everythingElse()
  expect(turns).toEqual([1])
  timers.fire()
  await until(() => turns.length === 2)
  expect(turns).toEqual([1, 2])
  ends[1]?.resolve()
  await billing.close()
  expect(await accountById(store.db, accountId)).toMatchObject({ posted: balance - price * 3n, held: 0n })
})

test('nothing is posted before its journal record is durable', async () => {
  const { store, accountId, open } = await makeBooks()
  const bank = makeStoreBank(store)
  const sync = Promise.withResolvers<void>()
  const asked = Promise.withResolvers<void>()
  const disk = memoryDisk()
  disk.onSync = () => {
    asked.resolve()
    return sync.promise
  }
  const turns: number[] = []
  const watched: Bank = {
    ...bank,
    turn(identity, turn) {
      turns.push(turn.postings.length)
      return bank.turn(identity, turn)
    },
  }
  const billing = await open(watched, never, disk)
  await sell(billing, accountId, 1)
  const posted = billing.post()
  await asked.promise
  await everythingElse()
  // Only the turn of the refill, which had no postings.
  expect(turns).toEqual([0])
  sync.resolve()
  await posted
  expect(turns).toContain(1)
  await billing.close()
})

test('an ending that fills a turn is not posted before its journal record is durable', async () => {
  const { store, accountId, open } = await makeBooks()
  const bank = makeStoreBank(store)
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-teller-'))
  leftovers.push(() => rmSync(folder, { recursive: true, force: true }))
  const disk = openDisk(folder)
  let written = ''
  let durable = ''
  const watchedDisk: Disk = {
    ...disk,
    open(name) {
      const file = disk.open(name)
      return {
        ...file,
        write(bytes, position) {
          file.write(bytes, position)
          written += Buffer.from(bytes).toString('latin1')
        },
        async sync() {
          const upTo = written
          await file.sync()
          durable = upTo
        },
      }
    },
  }
  const early: string[] = []
  const posted: string[] = []
  const impatient: Bank = {
    ...bank,
    postingsPerTurn: 1,
    turn(identity, turn) {
      for (const { holdId } of turn.postings) {
        posted.push(holdId)
        if (!durable.includes(`"SETTLE","id":"${holdId}"`)) early.push(holdId)
      }
      return bank.turn(identity, turn)
    },
  }
  const billing = await open(impatient, never, watchedDisk)
  for (const at of [1, 2, 3]) await sell(billing, accountId, at)
  await billing.close()
  expect(posted).toHaveLength(3)
  expect(early).toEqual([])
})

test('a reclaimed node that comes back with its journal is refused', async () => {
  const { store, accountId, open } = await makeBooks()
  await sell(await open(), accountId, 1)
  await reclaimNode(store, { node: 'node_a', silentSince: Infinity, actor: 'test' })
  // A restored database looks the same to the node, so the message names that too.
  expect(open()).rejects.toThrow(/reclaimed.*older copy.*"journal".*"node"/)
  // The customer keeps the money, because the charge can no longer be proved.
  expect(await accountById(store.db, accountId)).toMatchObject({ posted: balance, held: 0n })
  expect(await checkLedger(store)).toEqual([])
})
