import { formatDollars, showDollars, type Nano } from '../base/money.ts'
import { nodeSeenAt, reclaimNode } from '../store/leases.ts'
import { openLeasesAndHolds } from '../store/reconcile.ts'
import { actor, inEitherMode } from './installation.ts'
import { say, sayJson, showTime } from './output.ts'

// A node that has leases speaks to the database every twenty seconds.
const aliveMs = 60_000

/** `turnpike ledger reclaim`: for a node whose disk is gone. One that can still be started must be started instead. */
export async function reclaim(options: { node: string; confirm?: boolean; json?: boolean }): Promise<void> {
  const { node } = options
  await inEitherMode({}, async ({ store }) => {
    if (!options.confirm) {
      const seenAt = await nodeSeenAt(store.db, node)
      if (seenAt === undefined) throw absent(node)
      if (seenAt >= store.now() - aliveMs) throw alive(node, seenAt)
      const { leases } = await openLeasesAndHolds(store.db)
      const held = leases.filter((lease) => lease.node === node)
      process.exitCode = 2
      if (options.json) return sayJson({ node, would_return: held.map(showLease) })
      for (const { account, amount } of held.map(showLease)) say(`${account}: ${showDollars(amount)} would go back`)
      say('Nothing was changed. Charges that the node had not yet posted would be lost with its journal: customers are')
      say("not charged for them, and vendors' bills show them as our loss. To go ahead, add --confirm.")
      return
    }
    const outcome = await reclaimNode(store, { node, silentSince: store.now() - aliveMs, actor })
    if (outcome.outcome === 'absent') throw absent(node)
    if (outcome.outcome === 'alive') throw alive(node, outcome.seenAt)
    const returned = outcome.leases.map(showLease)
    if (options.json) return sayJson({ node, returned })
    for (const { account, amount } of returned) say(`${account}: ${showDollars(amount)} went back`)
    say(
      `Node ${node} is fenced off: its old data folder must not be used again. Now reconcile with the vendors' bills.`,
    )
  })
}

function showLease({ accountId, amount }: { readonly accountId: string; readonly amount: Nano }) {
  return { account: accountId, amount: formatDollars(amount) }
}

function absent(node: string): Error {
  return new Error(`there is no node "${node}"; turnpike reconcile lists leases`)
}

function alive(node: string, seenAt: number): Error {
  return new Error(`node ${node} was heard of at ${showTime(seenAt)}: stop it, and wait a minute`)
}
