import { describe, expect, test } from 'bun:test'
import { orderOf, saleOf, sentOf } from '../../../test/simulation/request.ts'
import { nano } from '../../base/money.ts'
import type { Posting } from '../../store/turns.ts'
import { decodeRecord, encodeRecord, type JournalRecord } from './records.ts'
import { replay } from './replay.ts'

const order = orderOf('req_a', 'acc_a', 100n)
const hold: JournalRecord = { type: 'HOLD', id: 'hold_a', order }
const sentHold: JournalRecord = { ...hold, attempt: sentOf('att_1') }
const send = (attempt: string): JournalRecord => ({ type: 'SEND', id: 'hold_a', attempt: sentOf(attempt) })
const mark = (price: bigint, costs: Readonly<Record<string, bigint>> = { att_1: price / 2n }): JournalRecord => ({
  type: 'MARK',
  id: 'hold_a',
  progress: {
    usage: { input: 5, output: 6 },
    price: nano(price),
    delivered: Object.entries(costs).map(([id, cost]) => ({ id, vendorCost: nano(cost) })),
  },
})
const flushed: JournalRecord = { type: 'FLUSHED', ids: ['hold_a'] }

function posting(charge: bigint, basis: Posting['basis']): Posting {
  const { attempts, usage } = saleOf(charge, ['att_1'])
  const { requestId: id, keyId, model, capability, startedAt: createdAt } = order
  return {
    holdId: 'hold_a',
    accountId: 'acc_a',
    priceVersion: 'v1',
    charge: nano(charge),
    excess: nano(3n),
    basis,
    usage,
    request: { id, keyId, model, capability, status: 200, streamed: true, durationMs: 7, createdAt },
    attempts,
  }
}
const settled = posting(40n, 'vendor')
const voided = posting(0n, 'policy_zero')
const settle: JournalRecord = { type: 'SETTLE', id: 'hold_a', posting: settled }
const release: JournalRecord = { type: 'VOID', id: 'hold_a', posting: voided }

/** The same record for another hold. */
const other = (record: JournalRecord) => ({ ...record, id: 'hold_b' }) as JournalRecord

/** Replays the records from their text in the journal, as after a crash. */
const owed = (...records: JournalRecord[]) => replay(records.map((record) => decodeRecord(encodeRecord(record))))

describe('a replayed hold', () => {
  test.each<{ name: string; records: JournalRecord[]; charge?: bigint; basis?: string }>([
    { name: 'a hold without an attempt owes nothing', records: [hold] },
    { name: 'a mark without an attempt owes nothing', records: [hold, mark(30n)] },
    {
      name: 'an attempt that delivered nothing is posted at zero',
      records: [sentHold],
      charge: 0n,
      basis: 'policy_zero',
    },
    {
      name: 'an attempt recorded apart from its hold is also posted at zero',
      records: [hold, send('att_1')],
      charge: 0n,
      basis: 'policy_zero',
    },
    {
      name: 'an attempt recorded with its hold is charged up to its mark',
      records: [sentHold, mark(30n)],
      charge: 30n,
      basis: 'estimated',
    },
    {
      name: 'an attempt recorded apart from its hold is charged up to its mark',
      records: [hold, send('att_1'), mark(30n)],
      charge: 30n,
      basis: 'estimated',
    },
    {
      name: 'the last of several marks is charged',
      records: [hold, send('att_1'), mark(30n), mark(45n)],
      charge: 45n,
      basis: 'estimated',
    },
    {
      name: 'a mark above the hold is charged only up to the hold',
      records: [hold, send('att_1'), mark(130n)],
      charge: 100n,
      basis: 'estimated',
    },
    {
      name: 'a settlement is charged in place of the mark',
      records: [hold, send('att_1'), mark(30n), settle],
      charge: 40n,
      basis: 'vendor',
    },
    {
      name: 'a released hold is posted at zero despite its mark',
      records: [hold, send('att_1'), mark(30n), release],
      charge: 0n,
      basis: 'policy_zero',
    },
    {
      name: 'a mark after the settlement is ignored',
      records: [hold, send('att_1'), settle, mark(30n)],
      charge: 40n,
      basis: 'vendor',
    },
    { name: 'a posted hold owes nothing more', records: [hold, send('att_1'), settle, flushed] },
    {
      name: 'a settlement at the start of a segment owes nothing more once it is posted',
      records: [settle, { type: 'OPEN' }, flushed],
    },
    {
      name: 'a settlement at the start of a segment is charged without its hold',
      records: [settle, { type: 'OPEN' }],
      charge: 40n,
      basis: 'vendor',
    },
    { name: 'an attempt and a mark without their hold owe nothing', records: [send('att_1'), mark(3n)] },
  ])('$name', ({ records, charge, basis }) => {
    const found = owed(...records).map((one) => ({ charge: one.charge as bigint, basis: one.basis as string }))
    expect(found).toEqual(charge === undefined || basis === undefined ? [] : [{ charge, basis }])
  })
})

test('settlements and releases are posted exactly as they were recorded', () => {
  expect(owed(hold, send('att_1'), settle)).toEqual([settled])
  expect(owed(hold, send('att_1'), release)).toEqual([voided])
})

test('a request interrupted by a crash is posted with each of its attempts', () => {
  const [posted] = owed(sentHold, send('att_2'), mark(31n, { att_2: 15n }))
  expect(posted?.attempts).toEqual([
    { ...sentOf('att_1'), status: 0, vendorCost: nano(0n), delivered: false },
    { ...sentOf('att_2'), status: 0, vendorCost: nano(15n), delivered: true },
  ])
  expect(owed(hold, send('att_1'), send('att_2'), mark(31n, { att_2: 15n }))).toEqual(
    posted === undefined ? [] : [posted],
  )
  expect(posted).toMatchObject({
    usage: { input: 5, output: 6 },
    excess: nano(0n),
    request: { id: 'req_a', status: 500, streamed: true, createdAt: order.startedAt },
  })
})

test('parallel attempts cost and delivered what the last mark says of each', () => {
  const sent = [sentHold, send('att_2'), send('att_3')]
  const told = (...marks: JournalRecord[]) =>
    owed(...sent, ...marks)[0]?.attempts.map(({ id, vendorCost, delivered }) => [id, BigInt(vendorCost), delivered])
  expect(told(mark(20n, { att_2: 10n }), mark(60n, { att_1: 9n, att_2: 10n, att_3: 11n }))).toEqual([
    ['att_1', 9n, true],
    ['att_2', 10n, true],
    ['att_3', 11n, true],
  ])
  // The last attempt has left and delivered nothing yet; the second has delivered at no cost.
  expect(told(mark(20n, { att_1: 9n, att_2: 0n }))).toEqual([
    ['att_1', 9n, true],
    ['att_2', 0n, true],
    ['att_3', 0n, false],
  ])
  expect(told()).toEqual([
    ['att_1', 0n, false],
    ['att_2', 0n, false],
    ['att_3', 0n, false],
  ])
})

test('a mark in the older form has one cost for all attempts, which all count as delivered', () => {
  const older = `{"type":"MARK","id":"hold_a","progress":{"usage":{"output":6},"price":"60","vendorCost":"30"}}`
  const records = [sentHold, send('att_2')].map(encodeRecord)
  const [posted] = replay([...records, older].map(decodeRecord))
  expect(posted).toMatchObject({ charge: nano(60n), basis: 'estimated' })
  expect(posted?.attempts.map(({ id, vendorCost, delivered }) => [id, BigInt(vendorCost), delivered])).toEqual([
    ['att_1', 0n, true],
    ['att_2', 30n, true],
  ])
})

test('records of different holds do not mix', () => {
  const found = owed(hold, other(hold), send('att_1'), other(send('att_9')), other(mark(9n)), settle, flushed)
  expect(found.map(({ holdId, charge }) => [holdId, charge as bigint])).toEqual([['hold_b', 9n]])
})

test('amounts beyond what a float can hold survive the journal', () => {
  const amount = 9_007_199_254_740_993n
  const big = { ...orderOf('req_a', 'acc_a', amount) }
  const found = owed({ type: 'HOLD', id: 'hold_a', order: big }, send('att_1'), mark(amount, { att_1: amount - 2n }))
  expect(found.map(({ charge }) => charge as bigint)).toEqual([amount])
  expect(found[0]?.attempts.map(({ vendorCost }) => vendorCost as bigint)).toEqual([amount - 2n])
})
