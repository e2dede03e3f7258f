import { hash } from 'node:crypto'
import { GatewayError } from '../base/errors.ts'
import { systemTimers, type Clock, type Timers } from '../base/clock.ts'
import type { Address } from '../base/http/connection.ts'
import type { Log } from '../base/log.ts'
import { readRevision } from '../store/audit.ts'
import { keyByDigest, type ApiKey, type KeyAccount, type SpendingCap } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import type { KeyLimits, Mode } from '../store/schema.ts'
import { AuthFailures } from './auth-failures.ts'
import { BoundedMap } from '../base/bounded-map.ts'
import { allows } from './scope.ts'
import type { SecretKeys } from './secret-keys.ts'

/** Who is asking: a key and the account it spends from. */
export type Principal = {
  readonly accountId: string
  readonly keyId: string
  readonly limits: KeyLimits | null
  /** What the key, and its account, may spend in a period. */
  readonly caps: readonly SpendingCap[]
  mayUse(model: string): boolean
}

/** By both clocks: the one that never jumps stands still while the machine sleeps. */
type Moment = { readonly now: number; readonly monotonic: number }

type Known = { readonly principal: Principal; readonly expiresAt: number | null }

const entriesMax = 20_000
const revisionPollMs = 1_000
// A node without a request for this many polls rests: it reads the revision only every `restMs`, often enough that its
// cache is still trusted should the database go away, and once more before it answers the next request.
const quietPollsMax = 10
const restMs = 10_000
// A revoked key is dead on every node within this time. A cache that was confirmed longer ago is that of a process that
// was suspended: it has slept through its polls, so it reads the revision before it answers.
const confirmedMsMax = 5_000
// While the database is out of reach, cached keys are trusted for this long and no longer.
const trustMs = 60_000
const unseen = 'changes of keys cannot be read: cached keys stay valid for up to a minute'

// Clients tell a bad key from a bad field by the first four words, which are OpenAI's: LiteLLM looks for them.
const badKey =
  'Incorrect API key provided, or an expired or revoked one, or none. Send a valid key as "Authorization: Bearer sk-…".'

/**
 * Looks keys up by their digest and remembers the answer, good or bad, until what any key may do changes: every such
 * change moves a revision in the database, which every node with traffic reads once a second.
 */
export class KeyRing {
  readonly #store: Store
  readonly #secretKeys: SecretKeys
  readonly #mode: Mode
  readonly #clock: Clock
  readonly #log: Log
  readonly #failures: AuthFailures
  readonly #known = new BoundedMap<string, Known | 'unknown'>(entriesMax)
  readonly #pending = new Map<string, Promise<Known | 'unknown'>>()
  #revision = -1
  /** When the last reading of the revision began. */
  #confirmedAt: Moment
  readonly #timers: Timers
  #callOff = () => {}
  #closed = false
  /** Whether a key was checked since the last poll. */
  #isAsked = false
  #quietPolls = 0
  /** Whether the last poll did not reach the database. */
  #isAway = false
  #polling: Promise<void> | undefined

  constructor(parts: {
    store: Store
    secretKeys: SecretKeys
    mode: Mode
    clock: Clock
    timers?: Timers
    log: Log
    authFailuresPerMinute: number
  }) {
    this.#store = parts.store
    this.#secretKeys = parts.secretKeys
    this.#mode = parts.mode
    this.#clock = parts.clock
    this.#timers = parts.timers ?? systemTimers
    this.#log = parts.log
    this.#failures = new AuthFailures({ ...parts, message: badKey })
    this.#confirmedAt = this.#moment()
    this.#schedule()
  }

  async authenticate(key: string | undefined, address: Address): Promise<Principal> {
    if (key === undefined) throw this.#failures.refusal(address)
    this.#isAsked = true
    // The cache is looked up by a plain hash, at a third of the price of the keyed one that the database has.
    const fingerprint = hash('sha256', key)
    if (!this.#isResting && this.#isConfirmed) return this.#find(key, fingerprint, address)
    const confirmed = this.#confirm()
    // A key that is not cached is read from the database anyway, so it does not wait for the poll first.
    if (this.#remembered(fingerprint) === undefined) return this.#find(key, fingerprint, address)
    return confirmed.then(() => this.#find(key, fingerprint, address))
  }

  close(): void {
    this.#closed = true
    this.#callOff()
  }

  #find(key: string, fingerprint: string, address: Address): Principal | Promise<Principal> {
    const known = this.#remembered(fingerprint)
    if (known !== undefined) return this.#principalOf(known, address)
    return this.#lookUp(key, fingerprint, address).then((found) => this.#principalOf(found, address))
  }

  #principalOf(known: Known | 'unknown', address: Address): Principal {
    if (known === 'unknown' || (known.expiresAt !== null && known.expiresAt <= this.#clock.now())) {
      throw this.#failures.refusal(address)
    }
    return known.principal
  }

  #remembered(fingerprint: string): Known | 'unknown' | undefined {
    if (this.#clock.monotonic() - this.#confirmedAt.monotonic > trustMs) return undefined
    return this.#known.get(fingerprint)
  }

  async #lookUp(key: string, fingerprint: string, address: Address): Promise<Known | 'unknown'> {
    this.#failures.assertMayTry(key, address)
    return this.#pending.get(fingerprint) ?? this.#ask(key, fingerprint)
  }

  #ask(key: string, fingerprint: string): Promise<Known | 'unknown'> {
    const revision = this.#revision
    const asked = this.#readKey(this.#secretKeys.digest(this.#mode, key))
      .then((known) => {
        // A key that was read before a change must not be cached after it.
        if (revision === this.#revision) this.#known.set(fingerprint, known)
        return known
      })
      .finally(() => this.#pending.delete(fingerprint))
    this.#pending.set(fingerprint, asked)
    return asked
  }

  async #readKey(digest: string): Promise<Known | 'unknown'> {
    const found = await keyByDigest(this.#store.db, digest).catch((thrown: unknown) => {
      throw new GatewayError('overloaded', 'Keys cannot be checked at the moment.', {
        retryAfterSeconds: 1,
        cause: thrown,
      })
    })
    // Each mode has its own accounts: play money must not buy real answers, nor the reverse.
    if (found === undefined || found.account.mode !== this.#mode) return 'unknown'
    const { key, account } = found
    if (!key.enabled || key.revokedAt !== null || !account.enabled) return 'unknown'
    return {
      expiresAt: key.expiresAt,
      principal: {
        accountId: account.id,
        keyId: key.id,
        limits: key.limits,
        caps: capsOf(key, account),
        mayUse: (model) => allows(key.models, model),
      },
    }
  }

  get #isResting(): boolean {
    return this.#quietPolls >= quietPollsMax
  }

  /** False where changes may have been missed. While the database is away, none can be read. */
  get #isConfirmed(): boolean {
    return this.#isAway || this.#msSince(this.#confirmedAt) <= confirmedMsMax
  }

  #moment(): Moment {
    return { now: this.#clock.now(), monotonic: this.#clock.monotonic() }
  }

  #msSince({ now, monotonic }: Moment): number {
    return Math.max(this.#clock.now() - now, this.#clock.monotonic() - monotonic)
  }

  /** A poll under way may have begun before the process was suspended, and then says nothing of the time since. */
  async #confirm(): Promise<void> {
    await this.#poll()
    if (!this.#isConfirmed) await this.#poll()
  }

  #schedule(): void {
    this.#callOff = this.#timers.after(this.#isResting ? restMs : revisionPollMs, () => void this.#poll())
  }

  /** One poll at a time: a caller that comes while one is under way waits for that one. */
  #poll(): Promise<void> {
    this.#callOff()
    this.#polling ??= this.#readRevision().finally(() => {
      this.#polling = undefined
      this.#quietPolls = this.#isAsked ? 0 : this.#quietPolls + 1
      this.#isAsked = false
      if (!this.#closed) this.#schedule()
    })
    return this.#polling
  }

  async #readRevision(): Promise<void> {
    const begunAt = this.#moment()
    try {
      const revision = await readRevision(this.#store.db)
      if (revision !== this.#revision) this.#known.clear()
      this.#revision = revision
      this.#confirmedAt = begunAt
      this.#isAway = false
    } catch (thrown) {
      // A reading that a suspended process gave up says nothing of the database.
      if (this.#msSince(begunAt) > confirmedMsMax) return
      // Logged once, however long the database is away.
      if (!this.#isAway) this.#log.warn({ cause: String(thrown) }, unseen)
      this.#isAway = true
    }
  }
}

function capsOf(key: ApiKey, account: KeyAccount): SpendingCap[] {
  const caps: SpendingCap[] = []
  if (key.cap !== null) caps.push({ ...key.cap, of: { accountId: account.id, keyId: key.id } })
  if (account.cap !== null) caps.push({ ...account.cap, of: { accountId: account.id } })
  return caps
}
