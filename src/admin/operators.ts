import type { Clock } from '../base/clock.ts'
import type { Address } from '../base/http/connection.ts'
import { sameBytes } from '../base/secret.ts'
import { AuthFailures } from '../keys/auth-failures.ts'
import { hintOf, type SecretKeys } from '../keys/secret-keys.ts'
import { hasAdminKey } from '../store/admin-keys.ts'
import type { Actor } from '../store/audit.ts'
import { isUnavailable } from '../store/faults.ts'
import type { Store } from '../store/open.ts'

/** Recognises operators, and tells them apart by the last characters of their keys. */
export type Operators = {
  authenticate(key: string | undefined, address: Address): Promise<Actor>
  /** Also accepts the key for metrics, which is good for nothing else. */
  authenticateScraper(key: string | undefined, address: Address): Promise<Actor>
}

export function makeOperators(parts: {
  store: Store
  secretKeys: SecretKeys
  clock: Clock
  authFailuresPerMinute: number
  metricsKey: string | undefined
}): Operators {
  const { store, secretKeys, metricsKey } = parts
  const failures = new AuthFailures({ ...parts, message: badKey })
  const scraping = metricsKey === undefined ? undefined : digestOf(metricsKey)
  // Digests of keys that this process has found good. These work even from an address that is guessing others.
  const good = new Set<string>()

  /** While the database is away, a key that was good stays good: operators want to look at the gateway just then. */
  async function isKey(digest: string): Promise<boolean> {
    try {
      return await hasAdminKey(store.db, digest)
    } catch (thrown) {
      if (isUnavailable(thrown) && good.has(digest)) return true
      throw thrown
    }
  }

  async function authenticate(key: string | undefined, address: Address): Promise<Actor> {
    if (key === undefined) throw failures.refusal(address)
    // The realm is part of the digest, so a customer's key is as unknown here as one that was never made.
    const digest = secretKeys.digest('admin', key)
    if (!good.has(digest)) failures.assertMayTry(key, address)
    // The database is asked every time: operators call seldom, and a good key then takes the same steps as a bad one.
    if (!(await isKey(digest))) {
      good.delete(digest)
      throw failures.refusal(address)
    }
    good.add(digest)
    return `admin:${hintOf(key)}`
  }

  /** Digests are compared rather than keys, so that the time this takes tells nothing about the key. */
  function digestOf(key: string): Buffer {
    return Buffer.from(secretKeys.digest('metrics', key))
  }

  return {
    authenticate,
    async authenticateScraper(key, address) {
      const isScraper = key !== undefined && scraping !== undefined && sameBytes(digestOf(key), scraping)
      return isScraper ? 'scraper' : authenticate(key, address)
    },
  }
}

const badKey = 'Incorrect or missing operator key. Send a valid one as "Authorization: Bearer adm-…".'
