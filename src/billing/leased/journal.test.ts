import { describe, expect, test } from 'bun:test'
import { memoryDisk, type MemoryDisk } from '../../../test/support/memory-disk.ts'
import { orderOf, sentOf } from '../../../test/simulation/request.ts'
import { World } from '../../../test/simulation/world.ts'
import { nano } from '../../base/money.ts'
import { DiskFull } from './disk.ts'
import { headerBytes, JournalCorrupt } from './frames.ts'
import { Journal, recoverJournal, type SyncMode } from './journal.ts'
import type { JournalRecord } from './records.ts'

const hold = (id: string): JournalRecord => ({ type: 'HOLD', id, order: orderOf(`req_${id}`, 'acc_a', 100n) })
const send = (id: string): JournalRecord => ({ type: 'SEND', id, attempt: sentOf(`att_${id}`) })
const mark = (id: string, price: bigint): JournalRecord => ({
  type: 'MARK',
  id,
  progress: { usage: { input: 1, output: 2 }, price: nano(price), delivered: [{ id, vendorCost: nano(price / 2n) }] },
})

function open(disk: MemoryDisk, options: { sync?: SyncMode; segmentBytes?: number } = {}) {
  const world = new World(1)
  const fatal: unknown[] = []
  const { sync = 'interval', segmentBytes } = options
  const { last } = recoverJournal(disk)
  const parts = { disk, timers: world, sync, fatal: (error: unknown) => void fatal.push(error) }
  const journal = new Journal({ ...parts, ...(segmentBytes !== undefined && { segmentBytes }) }, last)
  return { journal, world, fatal }
}

/** Everything that would be recovered if the process were killed now. */
const recovered = (disk: MemoryDisk) => recoverJournal(memoryDisk(disk.files)).records.filter(isNotOpen)
const isNotOpen = ({ type }: JournalRecord) => type !== 'OPEN'

describe('rotation', () => {
  test('no unfinished record is lost over thousands of records, and the files stay small', async () => {
    const disk = memoryDisk()
    const { journal, world } = open(disk, { segmentBytes: 4_000 })
    const ids = ['a', 'b', 'c', 'd', 'e']
    const marks = new Map<string, bigint>()
    const unfinished = () => [
      ...ids.flatMap((id) => [hold(id), send(id)]),
      ...[...marks].map(([id, price]) => mark(id, price)),
    ]
    await journal.begin(unfinished())
    for (let at = 0; at < 5_000; at++) {
      const id = ids[at % ids.length] ?? ''
      marks.set(id, BigInt(at))
      journal.append(mark(id, BigInt(at)))
      journal.write()
      if (journal.wantsRotation) journal.rotate(unfinished())
      world.run(world.now + 1)
      await Promise.resolve()
      if (at % 97 !== 0) continue
      const last = new Map<string, bigint>()
      for (const record of recovered(disk)) if (record.type === 'MARK') last.set(record.id, record.progress.price)
      expect(last).toEqual(marks)
    }
    expect(recoverJournal(disk).last.generation).toBeGreaterThan(100)
    for (const bytes of disk.files.values()) expect(bytes.length).toBeLessThan(20_000)
  })

  test('a kill at any byte of writing a new segment loses no record', async () => {
    const disk = memoryDisk()
    const { journal } = open(disk)
    await journal.begin([hold('a')])
    journal.rotate([hold('a'), send('a')])
    journal.append(mark('a', 5n))
    journal.write()
    const before = new Map(disk.files)
    journal.rotate([hold('a'), send('a'), mark('a', 5n)])
    const start = disk.files.get('segment-a') ?? new Uint8Array()
    const old = before.get('segment-a') ?? new Uint8Array()
    const expected = recovered(disk)
    for (let written = 0; written <= start.length; written++) {
      const torn = Buffer.concat([start.subarray(0, written), old.subarray(written)])
      const { records, last } = recoverJournal(memoryDisk([...before, ['segment-a', torn]]))
      expect(records.filter(isNotOpen)).toEqual(expected)
      // A torn generation is never used again, unless not even its first record is there.
      expect(last.generation).toBeGreaterThanOrEqual(2)
    }
  })

  test('a rotation waits until the start of the current segment is durable', async () => {
    const disk = memoryDisk()
    const { journal, world } = open(disk, { segmentBytes: 10 })
    await journal.begin([])
    journal.append(hold('a'))
    journal.write()
    expect(journal.wantsRotation).toBe(false)
    world.run(20)
    await Promise.resolve()
    expect(journal.wantsRotation).toBe(true)
    journal.rotate([hold('a')])
    journal.append(send('a'))
    journal.write()
    expect(journal.wantsRotation).toBe(false)
    // Had the cut taken the start and left the record behind it, that would be no damage: nothing of it was durable.
    const cut = new Uint8Array(disk.files.get('segment-b') ?? [])
    cut.fill(0, 0, headerBytes)
    const files = new Map(disk.files).set('segment-b', cut)
    expect(recovered({ ...disk, files })).toEqual([hold('a')])
  })

  test('a segment takes twice the copy that it started with before the next rotation', async () => {
    const disk = memoryDisk()
    const { journal } = open(disk, { segmentBytes: 10 })
    const unfinished = Array.from({ length: 20 }, (_, at) => hold(`hold_${at}`))
    await journal.begin(unfinished)
    const startBytes = disk.files.get('segment-a')?.length ?? 0
    await journal.durable()
    let written = 0
    for (; !journal.wantsRotation; written++) {
      journal.append(hold(`hold_${written}`))
      journal.write()
    }
    expect(disk.files.get('segment-a')?.length).toBeGreaterThan(startBytes * 2)
    expect(written).toBeLessThan(30)
  })

  test('a rotation works when the process cannot open another file', async () => {
    const disk = memoryDisk()
    const { journal } = open(disk)
    await journal.begin([hold('a')])
    disk.open = () => {
      throw new Error('EMFILE: too many open files')
    }
    journal.rotate([hold('a'), send('a')])
    journal.rotate([hold('b')])
    expect(recovered(disk)).toEqual([hold('b')])
    expect(recoverJournal(disk).last).toMatchObject({ name: 'segment-a', generation: 3 })
    await journal.close()
  })

  test('the segment left by the last process is synced before the other file is overwritten', async () => {
    const disk = memoryDisk()
    const first = open(disk)
    await first.journal.begin([hold('a')])
    const second = open(disk)
    disk.synced.length = 0
    await second.journal.begin([hold('a')])
    expect(disk.synced).toEqual(['segment-a'])
    expect(recoverJournal(disk).last).toMatchObject({ name: 'segment-b', generation: 2 })
  })
})

async function twoSynced(): Promise<MemoryDisk> {
  const disk = memoryDisk()
  const { journal } = open(disk)
  await journal.begin([hold('a')])
  for (const price of [1n, 2n, 3n]) {
    journal.append(mark('a', price))
    journal.write()
    await journal.durable()
  }
  return disk
}

describe('damage', () => {
  test('damage in the middle of a segment fails the recovery with the segment and the start of the record', async () => {
    const disk = await twoSynced()
    const bytes = Buffer.from(disk.files.get('segment-a') ?? [])
    const starts: number[] = []
    for (let start = 0; start < bytes.length; start += headerBytes + bytes.readUInt32LE(start + 4)) starts.push(start)
    for (const at of [0, 40, bytes.length >> 1]) {
      const copy = new Uint8Array(bytes)
      copy[at] = (copy[at] ?? 0) ^ 4
      const recover = () => recoverJournal(memoryDisk([['segment-a', copy]]))
      expect(recover).toThrow(JournalCorrupt)
      expect(recover).toThrow(`damaged at byte ${starts.findLast((start) => start <= at)} of segment-a, `)
    }
  })

  test('damage in a segment that a newer one has replaced is ignored', async () => {
    const disk = await twoSynced()
    const { journal } = open(disk)
    await journal.begin([hold('b')])
    const bytes = disk.files.get('segment-a') ?? new Uint8Array()
    bytes[40] = (bytes[40] ?? 0) ^ 4
    expect(recovered(disk)).toEqual([hold('b')])
  })
})

describe('durability', () => {
  test('with `always`, a waiter is released once its own bytes are durable, however much others write', async () => {
    const disk = memoryDisk()
    const { journal } = open(disk, { sync: 'always' })
    await journal.begin([])
    disk.onSync = async () => {
      journal.append(mark('other', 1n))
      journal.write()
      await Promise.resolve()
    }
    journal.append(mark('mine', 1n))
    journal.write()
    await journal.recorded()
    expect(disk.synced.length).toBeLessThan(4)
  })

  test('with `always`, bytes without a waiter become durable as soon as with `interval`', async () => {
    const disk = memoryDisk()
    const { journal, world } = open(disk, { sync: 'always' })
    await journal.begin([])
    world.run(6)
    expect(disk.synced).toEqual(['segment-a'])
  })

  test('a failed sync is final: later calls fail, and it is reported once and never tried again', async () => {
    const disk = memoryDisk()
    const { journal, fatal } = open(disk, { sync: 'always' })
    await journal.begin([])
    disk.onSync = () => Promise.reject(new Error('EIO'))
    journal.append(mark('a', 1n))
    journal.write()
    expect(journal.recorded()).rejects.toThrow('EIO')
    expect(journal.durable()).rejects.toThrow('EIO')
    journal.append(mark('a', 2n))
    expect(() => journal.write()).toThrow('EIO')
    expect(journal.close()).rejects.toThrow('EIO')
    expect(disk.synced.length).toBe(1)
    expect(fatal.length).toBe(1)
  })

  test('closing waits for bytes written during a sync, and nothing can be written afterwards', async () => {
    const disk = memoryDisk()
    const { journal, world } = open(disk, { sync: 'always' })
    await journal.begin([])
    const first = Promise.withResolvers<void>()
    disk.onSync = () => first.promise
    world.run(6)
    journal.append(mark('a', 1n))
    journal.write()
    const waiting = journal.recorded()
    const closing = journal.close()
    disk.onSync = () => Promise.resolve()
    first.resolve()
    await Promise.all([waiting, closing])
    expect(disk.synced.length).toBe(2)
    journal.append(mark('a', 2n))
    expect(() => journal.write()).toThrow('closed')
  })
})

test('closing writes and syncs what was appended, where there is room for it', async () => {
  const disk = memoryDisk()
  const { journal } = open(disk)
  await journal.begin([])
  journal.append(mark('a', 1n))
  await journal.close()
  expect(recovered(disk)).toEqual([mark('a', 1n)])
  expect(disk.synced).toEqual(['segment-a'])

  const next = open(disk)
  await next.journal.begin([])
  disk.roomBytes = 10
  next.journal.append(mark('a', 2n))
  await next.journal.close()
})

describe('a full disk', () => {
  test('a write that needs the reserve succeeds and returns `full`', async () => {
    const disk = memoryDisk()
    disk.roomBytes = 12_000
    expect(disk.reserve()).toBe(true)
    const { journal } = open(disk)
    expect(await journal.begin([])).toBe('written')
    disk.roomBytes = 10
    journal.append(hold('a'))
    expect(journal.write()).toBe('full')
    expect(recovered(disk)).toEqual([hold('a')])
  })

  test('a rotation that needs the reserve also returns `full`', async () => {
    const disk = memoryDisk()
    disk.roomBytes = 12_000
    disk.reserve()
    const { journal } = open(disk)
    await journal.begin([])
    disk.roomBytes = 10
    expect(journal.rotate([hold('a')])).toBe('full')
  })

  test('without a reserve, appended records are written once there is room', async () => {
    const disk = memoryDisk()
    const { journal } = open(disk)
    await journal.begin([])
    disk.roomBytes = 10
    journal.append(hold('a'))
    expect(() => journal.write()).toThrow(DiskFull)
    journal.append(send('a'))
    expect(() => journal.write()).toThrow(DiskFull)
    expect(recovered(disk)).toEqual([])
    disk.roomBytes = 5_000
    expect(journal.write()).toBe('written')
    expect(recovered(disk)).toEqual([hold('a'), send('a')])
  })

  test('a rotation that runs out of room keeps the older segment and is completed later', async () => {
    const disk = memoryDisk()
    const { journal } = open(disk)
    await journal.begin([hold('a')])
    disk.roomBytes = 10
    expect(() => journal.rotate([hold('a'), send('a')])).toThrow(DiskFull)
    expect(recovered(disk)).toEqual([hold('a')])
    // Until then, what was written before is durable once the older segment is.
    await journal.durable()
    expect(disk.synced).toEqual(['segment-a'])
    disk.roomBytes = 5_000
    journal.append(mark('a', 9n))
    journal.write()
    expect(recovered(disk)).toEqual([hold('a'), send('a'), mark('a', 9n)])
  })
})
