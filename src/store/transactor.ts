import type { Store } from './open.ts'
import type { Tx } from './schema.ts'

/** What a change needs of the store: a transaction of its own, or one that it joins. */
export type Transactor = Pick<Store, 'now' | 'transaction'>

/** Several changes in one transaction: all of them or none. */
export function joinTransaction(store: Transactor, tx: Tx): Transactor {
  return { now: () => store.now(), transaction: (work) => work(tx) }
}
