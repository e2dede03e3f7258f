import { Database } from 'bun:sqlite'
import { afterEach, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accountId, fundedAccount } from '../../../test/support/ledger.ts'
import { orderOf, saleOf, sentOf } from '../../../test/simulation/request.ts'
import { postingOf, returnOf, standingOf, takeOf, turnOf } from '../../../test/support/turns.ts'
import { systemClock, systemTimers } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { nano } from '../../base/money.ts'
import { checkLedger } from '../../store/check.ts'
import { openStore, type Store } from '../../store/open.ts'
import { Fenced } from '../../store/turns.ts'
import { BankUnavailable, type Bank } from './bank.ts'
import { openDisk } from './disk.ts'
import { openLeasedBilling } from './leased.ts'
import { startWorkerBank } from './worker-bank.ts'

let folder = ''
let store: Store | undefined
let banks: Bank[] = []

afterEach(async () => {
  for (const bank of banks) await bank.close().catch(() => {})
  banks = []
  await store?.close()
  store = undefined
  rmSync(folder, { recursive: true, force: true })
})

/** A database file that is open twice: here, as in the gateway, and by a bank in a thread of its own. */
async function openBoth() {
  folder = mkdtempSync(join(tmpdir(), 'turnpike-bank-'))
  const file = join(folder, 'turnpike.db')
  store = await openStore({ file })
  await fundedAccount(store)
  return { store, bank: await startBank(file), file }
}

async function startBank(file: string): Promise<Bank> {
  const bank = await startWorkerBank(file, Promise.resolve())
  banks.push(bank)
  return bank
}

/** Used instead of `expect().rejects`, in which Bun waits without receiving messages of other threads. */
async function thrownBy(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
}

test('turns, standings and openings pass between the threads with their amounts, maps and sets', async () => {
  const { store, bank } = await openBoth()
  const opened = await bank.open('node_a', ['hold_a'])
  expect(opened).toEqual({ epoch: 1, turn: 0, leases: new Map(), posted: new Set() })
  const identity = { node: 'node_a', epoch: 1 }
  expect(await bank.turn(identity, turnOf(1, { takes: [takeOf(100n)] }))).toEqual(
    new Map([[accountId, { kind: 'granted', amount: nano(100n) } as const]]),
  )
  await bank.turn(identity, turnOf(2, { postings: [postingOf('a', 30n)] }))
  const leases = new Map([[accountId, nano(70n)]])
  expect(await bank.resolveLostTurn(identity, 2)).toEqual({ turn: 2, leases })
  expect(await bank.open('node_a', ['hold_a', 'hold_b'])).toEqual({
    epoch: 2,
    turn: 2,
    leases,
    posted: new Set(['hold_a']),
  })
  await bank.turn({ node: 'node_a', epoch: 2 }, turnOf(3, { returns: [returnOf(70n)] }))
  expect((await standingOf(store)).accounts).toEqual([{ id: accountId, posted: nano(970n), held: nano(0n) }])
  expect(await checkLedger(store)).toEqual([])
})

test('errors keep their kind and message across the threads', async () => {
  const { bank } = await openBoth()
  const { epoch } = await bank.open('node_a', [])
  await bank.open('node_a', [])
  const fenced = await thrownBy(bank.turn({ node: 'node_a', epoch }, turnOf(1)))
  expect(fenced).toBeInstanceOf(Fenced)
  const says = /^another process runs as node node_a: .* a copy of its folder \(TURNPIKE_DATA\)/
  expect(fenced).toHaveProperty('message', expect.stringMatching(says))
  const parts = { returns: [returnOf(1n)] }
  const refused = await thrownBy(bank.turn({ node: 'node_a', epoch: epoch + 1 }, turnOf(1, parts)))
  expect(refused).not.toBeInstanceOf(Fenced)
  expect(refused).toHaveProperty('message', expect.stringContaining('account_held_positive'))
})

test('a file that is not a database fails the start', async () => {
  folder = mkdtempSync(join(tmpdir(), 'turnpike-bank-'))
  const file = join(folder, 'turnpike.db')
  writeFileSync(file, 'not a database, whatever its name says'.repeat(100))
  expect(await thrownBy(startWorkerBank(file, Promise.resolve()))).toBeInstanceOf(Error)
})

test('the worker runs no migrations, and opens the file only once they have succeeded', async () => {
  const { file } = await openBoth()
  const undo = new Database(file)
  undo.run('alter table attempt drop column delivered')
  undo.run("delete from kysely_migration where name = '0006-delivered'")
  await (await startBank(file)).open('node_a', [])
  expect(undo.query("select 1 from kysely_migration where name = '0006-delivered'").all()).toEqual([])
  undo.close()

  const absent = join(folder, 'absent.db')
  const failure = new Error('it cannot be migrated')
  expect(await thrownBy(startWorkerBank(absent, Promise.reject(failure)))).toBe(failure)
  expect(existsSync(absent)).toBe(false)
})

test('a database that is locked for too long is named as the cause', async () => {
  const { bank, file } = await openBoth()
  const other = new Database(file)
  other.run('begin immediate')
  const thrown = await thrownBy(bank.open('node_a', []))
  other.run('rollback')
  other.close()
  expect(thrown).toBeInstanceOf(BankUnavailable)
  expect(thrown).toHaveProperty('message', expect.stringContaining('database is locked'))
}, 120_000)

test('a message that cannot be sent to the thread fails alone, and the thread goes on', async () => {
  const { bank } = await openBoth()
  const impossible = { node: 'node_a', epoch: 1, later: () => {} }
  expect(await thrownBy(bank.turn(impossible, turnOf(1)))).toBeInstanceOf(Error)
  // Only the message could not be sent; the thread itself goes on.
  expect(await bank.open('node_a', [])).toMatchObject({ epoch: 1 })
})

test('requests on a real file, journal and thread are charged correctly after a kill', async () => {
  const { store, bank, file } = await openBoth()
  // The first process is fenced off whenever it takes its next turn, and reports that as fatal.
  const told: string[] = []
  const fatal = (why: string) => void told.push(why)
  const parts = {
    node: 'node_a',
    clock: systemClock,
    timers: systemTimers,
    log: silentLog,
    fatal,
    sync: 'always',
  } as const
  const first = await openLeasedBilling({ ...parts, bank, disk: openDisk(join(folder, 'journal')) })
  const holds = await Promise.all(
    Array.from({ length: 10 }, async (_, at) => {
      const taken = await first.take(orderOf(`req_${at}`, accountId, 50n))
      if (taken.kind !== 'hold') throw new Error(taken.kind)
      await taken.hold.sending(sentOf(`att_${at}`))
      return taken.hold
    }),
  )
  holds[0]?.mark(() => undefined)
  holds[1]?.mark(() => ({
    usage: { input: 1, output: 1 },
    price: nano(9n),
    delivered: [{ id: 'att_1', vendorCost: nano(4n) }],
  }))
  const charges = await Promise.all(
    holds.slice(2).map((hold, at) => hold.settle(saleOf(20n + BigInt(at), [`att_${at + 2}`]))),
  )
  // From here on the first process counts as killed: hold 0 was sent, hold 1 delivered something.
  const second = await openLeasedBilling({
    ...parts,
    bank: await startBank(file),
    disk: openDisk(join(folder, 'journal')),
  })
  await second.close()
  const spent = charges.reduce((sum, charge) => sum + charge, 9n)
  expect((await standingOf(store)).accounts).toEqual([{ id: accountId, posted: nano(1_000n - spent), held: nano(0n) }])
  const requests = await store.db.selectFrom('request').select(['id', 'basis']).orderBy('id').execute()
  expect(requests.map(({ basis }) => basis)).toEqual([
    'policy_zero',
    'estimated',
    ...charges.map(() => 'vendor' as const),
  ])
  expect(await checkLedger(store)).toEqual([])
}, 120_000)

test('a thread that fails rejects the calls that wait and those that come later, and can be closed', async () => {
  const threads: Worker[] = []
  const { Worker: Real } = globalThis
  globalThis.Worker = class extends Real {
    constructor(...given: ConstructorParameters<typeof Worker>) {
      super(...given)
      threads.push(this)
    }
  }
  const { bank } = await openBoth().finally(() => (globalThis.Worker = Real))
  // A message without an id throws where the thread answers, outside of every call. The thread ends soon after, with a
  // call on its way that it never answers.
  threads[0]?.postMessage(undefined)
  let failure: unknown
  for (let calls = 0; calls < 1_000 && failure === undefined; calls++) failure = await thrownBy(bank.open('node_a', []))
  expect(failure).toHaveProperty('message', expect.stringMatching(/^the bank's thread failed: ./))
  expect(await thrownBy(bank.open('node_a', []))).toBe(failure)
  await bank.close()
})
