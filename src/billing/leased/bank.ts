import { isUnavailable } from '../../store/faults.ts'
import type { Store } from '../../store/open.ts'
import {
  openNode,
  readStanding,
  takeTurn,
  type Grant,
  type Identity,
  type Standing,
  type Turn,
} from '../../store/turns.ts'

/** The database's side of leased billing: money is there, and only the right to spend some of it is here. */
export type Bank = {
  /** How many postings it takes in one turn. */
  readonly postingsPerTurn: number
  /** Takes a new epoch for the node, and says which of these holds the database knows already. */
  open(
    node: string,
    holdIds: readonly string[],
  ): Promise<Standing & { readonly epoch: number; readonly posted: ReadonlySet<string> }>
  /** Rejects with `Fenced` for good, with `BankUnavailable` when the outcome is not known, else as a bug. */
  turn(identity: Identity, turn: Turn): Promise<ReadonlyMap<string, Grant>>
  /** Whether the turn of that number took place; where it did not, it never will. */
  standing(identity: Identity, unknown: number): Promise<Standing>
  /** Where there are other nodes that may have leased some of a balance: asks them to give back what they do not use. */
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

// A turn has a price of its own (a commit and some fifteen statements, a few milliseconds in all), which is the smaller the
// more postings share it. To make their rows takes a millisecond for every hundred, in which this thread does nothing else.
const postingsPerTurn = 500

/** The bank in this thread: right for PostgreSQL, where a turn is only waited for. */
export function makeStoreBank(store: Store): Bank {
  return {
    postingsPerTurn,
    open: (node, holdIds) => reach(openNode(store, node, holdIds)),
    turn: (identity, turn) => reach(takeTurn(store, identity, turn)),
    standing: (identity, unknown) => reach(readStanding(store, identity, unknown)),
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
