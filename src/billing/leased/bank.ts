import { isUnavailable } from '../../store/faults.ts'
import type { Store } from '../../store/open.ts'
import type { Grant } from '../../store/turn-accounts.ts'
import {
  openNode,
  resolveLostTurn,
  takeTurn,
  type Identity,
  type OpenedNode,
  type Standing,
  type Turn,
} from '../../store/turns.ts'

/** The database's side of leased billing: the money stays there, and a node has only the right to spend part of it. */
export type Bank = {
  /** How many postings it takes in one turn. */
  readonly postingsPerTurn: number
  /** Takes a new epoch for the node, and tells which of these holds are already posted. */
  open(node: string, holdIds: readonly string[]): Promise<OpenedNode>
  /** Rejects with `Fenced`, which is final, with `BankUnavailable` if the outcome is unknown, or because of a bug. */
  turn(identity: Identity, turn: Turn): Promise<ReadonlyMap<string, Grant>>
  /** Tells by its number whether the turn `unknown` took place; if it did not, it never will. */
  resolveLostTurn(identity: Identity, unknown: number): Promise<Standing>
  /** Given where nodes share the database: asks the others to give back what they lease of a balance and do not use. */
  recall?(accountId: string): Promise<void>
  onRecall?(listen: (accountId: string) => void): void
  close(): Promise<void>
}

export class BankUnavailable extends Error {
  constructor(cause: unknown) {
    super(`the database cannot be reached: ${String(cause)}`, { cause })
    this.name = 'BankUnavailable'
  }
}

// A turn has a fixed cost (a commit and some fifteen statements, a few milliseconds in all), which its postings share.
// Making their rows takes a millisecond for every hundred, during which this thread does nothing else.
const postingsPerTurn = 500

/** The bank in this thread. It suits PostgreSQL, where this thread only waits for a turn. */
export function makeStoreBank(store: Store): Bank {
  return {
    postingsPerTurn,
    open: (node, holdIds) => reach(openNode(store, node, holdIds)),
    turn: (identity, turn) => reach(takeTurn(store, identity, turn)),
    resolveLostTurn: (identity, unknown) => reach(resolveLostTurn(store, identity, unknown)),
    close: () => Promise.resolve(),
  }
}

async function reach<T>(asked: Promise<T>): Promise<T> {
  try {
    return await asked
  } catch (error) {
    throw isUnavailable(error) ? new BankUnavailable(error) : error
  }
}
