import type { Clock } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import type { Address } from '../base/listen.ts'
import { AuthFailures } from '../keys/auth-failures.ts'
import { hintOf, type SecretKeys } from '../keys/secret-keys.ts'
import { hasAdminKey } from '../store/admin-keys.ts'
import type { Actor } from '../store/audit.ts'
import { isUnavailable } from '../store/faults.ts'
import type { Store } from '../store/open.ts'

/** Tells operators from everybody else, and by the end of their key from each other. */
export type Operators = { authenticate(key: string | undefined, address: Address): Promise<Actor> }

export function makeOperators(parts: {
  store: Store
  secretKeys: SecretKeys
  clock: Clock
  authFailuresPerMinute: number
}): Operators {
  const { store, secretKeys } = parts
  const failures = new AuthFailures(parts.clock, parts.authFailuresPerMinute)
  // Keys of operators are never taken back while a process runs. These still work from an address that guesses others.
  const good = new Set<string>()

  /** While the database is away, a key that was good stays so: whoever watches the gateway wants to look just then. */
  async function isKey(digest: string): Promise<boolean> {
    try {
      return await hasAdminKey(store.db, digest)
    } catch (thrown) {
      if (isUnavailable(thrown) && good.has(digest)) return true
      throw thrown
    }
  }

  return {
    async authenticate(key, address) {
      if (key === undefined) throw refused(failures, address)
      // The realm is part of the digest: a customer's key is as unknown here as one that was never made.
      const digest = secretKeys.digest('admin', key)
      const waitSeconds = failures.waitSeconds(address())
      if (waitSeconds > 0 && !good.has(digest) && !secretKeys.hasChecksum(key)) {
        throw new GatewayError('too-many', 'Too many requests with a bad key.', { retryAfterSeconds: waitSeconds })
      }
      // Asked every time, known or not: operators call seldom, and a good key takes the same steps as a bad one.
      if (!(await isKey(digest))) throw refused(failures, address)
      good.add(digest)
      return `admin:${hintOf(key)}`
    },
  }
}

function refused(failures: AuthFailures, address: Address): GatewayError {
  failures.record(address())
  const message = 'Incorrect or missing operator key. Send a valid one as "Authorization: Bearer adm-…".'
  return new GatewayError('unauthenticated', message)
}
