import { afterEach, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateSync } from 'node:zlib'
import { noFatal } from '../../../test/support/fatal.ts'
import { orderOf, sentOf } from '../../../test/simulation/request.ts'
import { systemTimers } from '../../base/clock.ts'
import { DiskFull, openDisk } from './disk.ts'
import { Journal, recoverJournal } from './journal.ts'

const mebibyte = 1024 * 1024
let folders: string[] = []
let mounts: string[] = []

afterEach(() => {
  for (const mount of mounts) spawnSync('umount', [mount])
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
  folders = []
  mounts = []
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-disk-'))
  folders.push(folder)
  return folder
}

/** A file system of that size; undefined if this process may not mount one. */
function tinyFileSystem(size: string): string | undefined {
  const folder = newFolder()
  if (spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder]).status !== 0) return undefined
  mounts.push(folder)
  return folder
}

const canMount = process.getuid?.() === 0 && tinyFileSystem('1m') !== undefined
for (const mount of mounts) spawnSync('umount', [mount])

test('segments keep bytes written at any position, and only their owner can read them', async () => {
  const folder = join(newFolder(), 'journal')
  const disk = openDisk(folder)
  expect(disk.list()).toEqual([])
  const file = disk.open('segment-a')
  file.write(Buffer.from('hello world'), 0)
  file.write(Buffer.from('W'), 6)
  await file.sync()
  file.close()
  disk.open('segment-a').close()
  expect(Buffer.from(disk.read('segment-a')).toString()).toBe('hello World')
  expect(disk.list()).toEqual(['segment-a'])
  expect(statSync(folder).mode & 0o777).toBe(0o700)
  expect(statSync(join(folder, 'segment-a')).mode & 0o777).toBe(0o600)
})

test('the reserve occupies real space, is completed after a restart, and is given up at once', () => {
  const folder = newFolder()
  expect(openDisk(folder).reserve()).toBe(true)
  const reserve = join(folder, 'reserve')
  const { size, blocks } = statSync(reserve)
  expect(size).toBe(64 * mebibyte)
  expect(blocks * 512).toBeGreaterThanOrEqual(size)
  // Nor may it shrink on a file system that compresses.
  const piece = readFileSync(reserve).subarray(0, mebibyte)
  expect(deflateSync(piece).length).toBeGreaterThanOrEqual(mebibyte)
  // A reserve whose writing was interrupted is completed.
  truncateSync(reserve, mebibyte)
  const disk = openDisk(folder)
  expect(disk.reserve()).toBe(true)
  expect(statSync(reserve).size).toBe(64 * mebibyte)
  disk.useReserve()
  expect(existsSync(reserve)).toBe(false)
  expect(disk.list()).toEqual([])
})

async function journalOn(folder: string) {
  const disk = openDisk(folder)
  const hasReserve = disk.reserve()
  const { last } = recoverJournal(disk)
  const journal = new Journal({ disk, timers: systemTimers, sync: 'interval', fatal: noFatal }, last)
  await journal.begin([])
  return { disk, journal, hasReserve }
}

describe.skipIf(!canMount)('a file system that fills up', () => {
  const order = orderOf('req_a', 'acc_a', 1n)

  test('a disk too small for the reserve has none, and the journal can still be written', async () => {
    const folder = tinyFileSystem('8m') ?? ''
    const { disk, journal, hasReserve } = await journalOn(folder)
    expect(hasReserve).toBe(false)
    expect(existsSync(join(folder, 'reserve'))).toBe(false)
    journal.append({ type: 'HOLD', id: 'hold_a', order })
    expect(journal.write()).toBe('written')
    await journal.close()
    expect(recoverJournal(disk).records.length).toBe(2)
  })

  test('the reserve takes what must still be written, and is restored once there is room', async () => {
    const folder = tinyFileSystem('72m') ?? ''
    const { disk, journal, hasReserve } = await journalOn(folder)
    expect(hasReserve).toBe(true)
    const filler = join(folder, 'filler')
    // Room for less than a whole page stays unused.
    expect(() => writeFileSync(filler, Buffer.alloc(16 * mebibyte))).toThrow('ENOSPC')
    let outcome: 'written' | 'full' = 'written'
    let records = 0
    for (; outcome === 'written' && records < 1_000; records++) {
      journal.append({ type: 'SEND', id: 'hold_a', attempt: sentOf(`att_${records}`) })
      outcome = journal.write()
    }
    expect(outcome).toBe('full')
    expect(existsSync(join(folder, 'reserve'))).toBe(false)
    for (let more = 0; more < 5_000; more++) {
      journal.append({ type: 'SEND', id: 'hold_a', attempt: sentOf(`att_${records++}`) })
      expect(journal.write()).toBe('written')
    }
    expect(disk.reserve()).toBe(false)
    rmSync(filler)
    expect(disk.reserve()).toBe(true)
    await journal.close()
    expect(recoverJournal(disk).records.length).toBe(records + 1)
  })

  test('a write without any room throws DiskFull and leaves earlier bytes intact', async () => {
    const folder = tinyFileSystem('1m') ?? ''
    const disk = openDisk(folder)
    const file = disk.open('segment-a')
    file.write(Buffer.alloc(1_000, 1), 0)
    expect(() => file.write(Buffer.alloc(2 * mebibyte), 1_000)).toThrow(DiskFull)
    file.close()
    expect(readFileSync(join(folder, 'segment-a')).subarray(0, 1_000)).toEqual(Buffer.alloc(1_000, 1))
  })
})
