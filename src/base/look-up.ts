import { lookup } from 'node:dns/promises'
import { GatewayError } from './errors.ts'

/** Resolves a host name to its addresses. */
export type LookUp = (name: string) => Promise<readonly string[]>

// Half of the threads that bin/turnpike configures; the other half serves vendors' names and files.
const atOnceMax = 64

export const lookUp: LookUp = async (name) => {
  const found = await lookup(name, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

/**
 * For names that clients gave. A look-up occupies a thread until a name server answers, which may be never, and the
 * same pool of threads syncs the journal: a client that names many dead hosts must not hold up everything else.
 */
export const lookUpStranger: LookUp = boundLookUps(lookUp, atOnceMax)

/**
 * Refuses look-ups beyond the limit instead of queueing them, because so many are under way only when name servers do
 * not answer. The refusal is `overloaded` and not `bad-request`, because the refused name may come from another client.
 */
export function boundLookUps(resolve: LookUp, underwayMax: number): LookUp {
  let underway = 0
  return async (name) => {
    if (underway === underwayMax) {
      throw new GatewayError('overloaded', 'The gateway is resolving too many host names at the moment.', {
        retryAfterSeconds: 5,
      })
    }
    underway++
    try {
      return await resolve(name)
    } finally {
      underway--
    }
  }
}
