import { expect, test } from 'bun:test'
import { billedAt, line, look } from '../../../test/support/bills.ts'
import { eachEngine } from '../../../test/support/engines.ts'
import { fundedAccount } from '../../../test/support/ledger.ts'
import { postingOf, takeOf, turnOf } from '../../../test/support/turns.ts'
import { openNode, takeTurn } from '../../store/turns.ts'

// One more than is read at a time, both of the recorded calls and of a chain of postings.
const calls = 1_001

eachEngine('more calls than are read at a time', (open) => {
  test('all are looked for on the bill, and all of their postings are checked', async () => {
    const store = await open({ clock: { now: () => billedAt } })
    await fundedAccount(store, { amount: 10_000n })
    const { epoch } = await openNode(store, 'node_a', [])
    const postings = Array.from({ length: calls }, (_, at) => postingOf(String(at), 2n))
    const takes = [takeOf(BigInt(2 * calls))]
    await takeTurn(store, { node: 'node_a', epoch }, turnOf(1, { takes }))
    await takeTurn(store, { node: 'node_a', epoch }, turnOf(2, { postings }))
    const { breaches, matched, findings } = await look(store, [line('500', 1n)])
    expect(breaches).toEqual([])
    expect(matched.calls).toBe(1)
    expect(new Set(findings.map(({ kind }) => kind))).toEqual(new Set(['ledger-only']))
    expect(new Set(findings.map(({ ref }) => ref)).size).toBe(calls - 1)
  })
})
