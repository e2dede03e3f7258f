import { afterEach, beforeEach, expect, test } from 'bun:test'
import { noFatal } from '../../../test/support/fatal.ts'
import { handTimers } from '../../../test/support/hand-timers.ts'
import { memoryDisk } from '../../../test/support/memory-disk.ts'
import { systemClock } from '../../base/clock.ts'
import { silentLog } from '../../base/log.ts'
import { nano } from '../../base/money.ts'
import { openStore, type Store } from '../../store/open.ts'
import { makeStoreBank, type Bank } from './bank.ts'
import type { Disk } from './disk.ts'
import { openLeasedBilling } from './leased.ts'

let store: Store
beforeEach(async () => {
  store = await openStore({ file: ':memory:' })
})
afterEach(() => store.close())

/** Counts the timers and open files that billing leaves behind. */
function watched(disk: Disk, fail: { readonly write?: Error; readonly open?: Error } = {}) {
  const timers = handTimers()
  let files = 0
  const counting: Disk = {
    ...disk,
    reserve: () => disk.reserve(),
    open(name) {
      const file = disk.open(name)
      files++
      return {
        ...file,
        write(bytes, position) {
          if (fail.write !== undefined) throw fail.write
          file.write(bytes, position)
        },
        close() {
          files--
          file.close()
        },
      }
    },
  }
  const bank: Bank = { ...makeStoreBank(store) }
  if (fail.open !== undefined) bank.open = () => Promise.reject(fail.open)
  const parts = { node: 'node_a', bank, disk: counting, clock: systemClock, timers, log: silentLog, fatal: noFatal }
  return {
    open: () => openLeasedBilling({ ...parts, sync: 'interval' }),
    left: () => ({ files, timers: timers.waiting }),
    fire: () => timers.fire(),
  }
}

const nothing = { files: 0, timers: [] }

/** A disk without room for the reserve, so that a timer checks it again every second. */
function fullDisk() {
  return Object.assign(memoryDisk(), { roomBytes: 5_000 })
}

test.each([
  { name: 'its first segment cannot be written', fail: { write: new Error('the disk is broken') } },
  { name: 'the bank does not open', fail: { open: new Error('the bank is shut') } },
])('an opening that fails because $name leaves no file open and no timer set', async ({ fail }) => {
  const { open, left } = watched(fullDisk(), fail)
  const thrown = await open().catch((error: unknown) => error)
  expect(thrown).toBe(fail.write ?? fail.open)
  expect(left()).toEqual(nothing)
})

test('closing billing closes its files and stops checking the full disk', async () => {
  const { open, left } = watched(fullDisk())
  const billing = await open()
  expect(left().files).toBe(2)
  expect(left().timers).toContain(1_000)
  await billing.close()
  expect(left()).toEqual(nothing)
})

test('a check of the full disk that fails is repeated', async () => {
  const disk = fullDisk()
  const { open, left, fire } = watched(disk)
  const billing = await open()
  disk.reserve = () => {
    throw new Error('EMFILE: too many open files')
  }
  fire()
  expect(billing.ready).toBe(false)
  disk.reserve = () => true
  fire()
  expect(billing.ready).toBe(true)
  await billing.close()
  expect(left()).toEqual(nothing)
})

test('a start says so when the last process left leases but no journal', async () => {
  const said: unknown[] = []
  const bank: Bank = {
    ...makeStoreBank(store),
    open: async () => ({ epoch: 2, turn: 1, leases: new Map([['acc_a', nano(5n)]]), posted: new Set<string>() }),
    turn: async () => new Map(),
  }
  const log = { ...silentLog, error: (...words: unknown[]) => void said.push(words) }
  const parts = { node: 'node_a', bank, clock: systemClock, timers: handTimers(), log, fatal: noFatal }
  const disk = memoryDisk()
  await (await openLeasedBilling({ ...parts, disk, sync: 'interval' })).close()
  expect(said).toMatchObject([[{ leases: 1 }, expect.stringContaining('the journal of the last process is gone')]])
  await (await openLeasedBilling({ ...parts, disk, sync: 'interval' })).close()
  expect(said).toHaveLength(1)
})
