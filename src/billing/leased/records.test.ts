import { expect, test } from 'bun:test'
import { attemptOf } from '../../../test/support/ledger.ts'
import { postingOf } from '../../../test/support/turns.ts'
import { nano } from '../../base/money.ts'
import { decodeEndings, decodeRecord, encodeEndings, endedBy, WrittenTurn } from './records.ts'

/** Beyond what a float can hold: 2^53 + 1. */
const odd = nano(9_007_199_254_740_993n)

const large = postingOf('a', odd, { excess: nano(odd + 2n), attempts: [attemptOf('a', odd), attemptOf('b', 0n)] })
const free = postingOf('ü"\\\n€😀', 0n, { basis: 'policy_zero', usage: null, attempts: [] })
const doubtful = postingOf('c', 5n, { excessTo: 'suspense' })
const postings = [large, free, doubtful]

test('the journal record of an ending decodes to the exact posting', () => {
  const ended = postings.map(endedBy)
  expect(ended.map(({ record }) => decodeRecord(record))).toEqual([
    { type: 'SETTLE', id: 'hold_a', posting: large },
    { type: 'VOID', id: 'hold_ü"\\\n€😀', posting: free },
    { type: 'SETTLE', id: 'hold_c', posting: doubtful },
  ])
  expect(ended).toMatchObject(postings.map(({ holdId, accountId, charge }) => ({ holdId, accountId, charge })))
})

test('a bank reads the same postings from encoded endings, in this thread and in its own', () => {
  const ended = postings.map(endedBy)
  expect(decodeEndings(encodeEndings(ended))).toEqual(postings)
  expect(new WrittenTurn({ number: 7, takes: [], returns: [] }, ended)).toMatchObject({ number: 7, postings })
  expect(decodeEndings(encodeEndings([]))).toEqual([])
})
