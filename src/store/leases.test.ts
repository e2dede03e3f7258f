import { expect, test } from 'bun:test'
import { eachEngine } from '../../test/support/engines.ts'
import { accountId, fundedAccount } from '../../test/support/ledger.ts'
import { standingOf, takeOf, turnOf } from '../../test/support/turns.ts'
import { nano } from '../base/money.ts'
import { listAudit } from './audit.ts'
import { reclaimNode } from './leases.ts'
import { openNode, takeTurn } from './turns.ts'

const other = 'acc_b'

eachEngine('a reclaimed node', (open) => {
  test('a reclaimed node loses its leases and is fenced off, and another node keeps its own', async () => {
    const store = await open()
    await fundedAccount(store)
    await fundedAccount(store, { id: other })
    const identities = []
    for (const node of ['node_a', 'node_b']) {
      const { epoch } = await openNode(store, node, [])
      identities.push({ node, epoch })
      await takeTurn(store, { node, epoch }, turnOf(1, { takes: [takeOf(100n), takeOf(60n, 0n, other)] }))
    }
    const silentSince = store.now() + 1_000
    expect(await reclaimNode(store, { node: 'node_a', silentSince, actor: 'test' })).toMatchObject({
      outcome: 'reclaimed',
      leases: [
        { accountId, amount: nano(100n) },
        { accountId: other, amount: nano(60n) },
      ],
    })
    expect(await standingOf(store)).toEqual({
      accounts: [
        { id: accountId, posted: nano(1_000n), held: nano(100n) },
        { id: other, posted: nano(1_000n), held: nano(60n) },
      ],
      leases: [
        { node: 'node_b', account: accountId, amount: nano(100n) },
        { node: 'node_b', account: other, amount: nano(60n) },
      ],
    })
    const [reclaimed, left] = identities
    if (reclaimed === undefined || left === undefined) throw new Error('two nodes were opened')
    expect(takeTurn(store, reclaimed, turnOf(2))).rejects.toThrow('another process')
    // The reclaimed process stays fenced off after the node is started again, too.
    await openNode(store, 'node_a', [])
    expect(takeTurn(store, reclaimed, turnOf(2))).rejects.toThrow('another process')
    expect(await takeTurn(store, left, turnOf(2, { takes: [takeOf(1n)] }))).toBeDefined()
  })

  test('the audit states in dollars what went back to each account', async () => {
    const store = await open()
    await fundedAccount(store)
    const { epoch } = await openNode(store, 'node_a', [])
    await takeTurn(store, { node: 'node_a', epoch }, turnOf(1, { takes: [takeOf(100n)] }))
    await reclaimNode(store, { node: 'node_a', silentSince: store.now() + 1_000, actor: 'test' })
    const changes = await listAudit(store.db, { limit: 9 })
    expect(changes.filter(({ action }) => action === 'node.reclaim')).toMatchObject([
      { subject: 'node_a', detail: { leases: { [accountId]: '0.0000001' } } },
    ])
  })
})
