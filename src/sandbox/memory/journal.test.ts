import { expect, test } from 'bun:test'
import { appendFileSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openJournal } from './journal.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'

const root = temporaryFolder('journal')

let folders = 0
const newFolder = (): string => join(root, `${(folders += 1)}`, 'sandbox')

function open(folder: string, bytesMax?: number) {
  const complaints: unknown[] = []
  const complain = (cause: unknown): void => void complaints.push(cause)
  const journal = openJournal({ folder, now: Date.now(), complain, ...(bytesMax !== undefined && { bytesMax }) })
  return { ...journal, complaints }
}

test('the journal returns the records appended before it was closed', () => {
  const folder = newFolder()
  const first = open(folder)
  first.append({ film: { text: 'a\nb' } })
  first.append({ cleared: true })
  first.close()
  first.append({ late: true })
  expect(open(folder).read()).toEqual([{ film: { text: 'a\nb' } }, { cleared: true }])
})

test('records appended together are written together, in the next microtask', async () => {
  const folder = newFolder()
  const journal = open(folder)
  journal.append({ bill: 1 })
  journal.append({ film: 1 })
  expect(open(folder).read()).toEqual([])
  await Promise.resolve()
  expect(open(folder).read()).toEqual([{ bill: 1 }, { film: 1 }])
})

test.each([
  ['a record that is cut off', '{"film":{"id":'],
  ['bytes that are not text', '\u0000\u0001\uFFFF'],
])('a damaged last record is skipped and the journal continues: %s', (_, damage) => {
  const folder = newFolder()
  const first = open(folder)
  first.append({ kept: 1 })
  first.close()
  appendFileSync(join(folder, 'journal.jsonl'), `\n${damage}`)
  const second = open(folder)
  second.append({ kept: 2 })
  second.close()
  expect([open(folder).read(), second.complaints]).toEqual([[{ kept: 1 }, { kept: 2 }], []])
})

test('the journal keeps the newest records in two files of limited size', async () => {
  const folder = newFolder()
  const journal = open(folder, 1_000)
  for (let number = 0; number < 500; number += 1) {
    journal.append({ number })
    await Promise.resolve()
  }
  journal.close()
  const found = open(folder).read()
  expect(found.at(-1)).toEqual({ number: 499 })
  expect(found.length).toBeGreaterThan(1_000 / 20)
  const bytes = readdirSync(folder).map((name) => statSync(join(folder, name)).size)
  expect(bytes).toHaveLength(2)
  expect(Math.max(...bytes)).toBeLessThan(1_100)
})

test('a journal file not written to for a day is emptied when it is opened', () => {
  const folder = newFolder()
  const first = open(folder)
  first.append({ old: true })
  first.close()
  const twoDaysAgo = Date.now() / 1_000 - 2 * 24 * 60 * 60
  utimesSync(join(folder, 'journal.jsonl'), twoDaysAgo, twoDaysAgo)
  expect(open(folder).read()).toEqual([])
  expect(statSync(join(folder, 'journal.jsonl')).size).toBe(0)
})

test('a journal that cannot be written complains once and keeps nothing', async () => {
  const folder = join(root, 'a file')
  writeFileSync(folder, '')
  const journal = open(folder)
  journal.append({ lost: true })
  await Promise.resolve()
  journal.close()
  expect([journal.read(), journal.complaints.length]).toEqual([[], 1])
})
