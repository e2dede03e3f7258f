import { lookup } from 'node:dns/promises'
import { GatewayError } from './errors.ts'

/** The addresses of a name. */
export type LookUp = (name: string) => Promise<readonly string[]>

// Half of the threads that bin/turnpike asks for. The others are for vendors' names and for files.
const atOnceMax = 64

export const lookUp: LookUp = async (name) => {
  const found = await lookup(name, { all: true, verbatim: true })
  return found.map(({ address }) => address)
}

/**
 * For names that clients gave. A look-up takes a thread until somebody answers, which may be never, of the same threads that
 * make the journal durable: whoever names enough hosts for which nobody answers must not hold up all others.
 */
export const lookUpStranger: LookUp = boundLookUps(lookUp, atOnceMax)

/**
 * Refuses what is too much, and has nobody wait: that many take long only where nobody answers. It is not the fault of the name
 * that comes then, which somebody else may have given.
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
