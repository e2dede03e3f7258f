import type { Clock } from '../base/clock.ts'
import { BoundedMap } from '../base/bounded-map.ts'
import { GatewayError } from '../base/errors.ts'
import type { Address } from '../base/http/connection.ts'
import type { SecretKeys } from './secret-keys.ts'

const windowMs = 60_000
const addressesMax = 10_000

/** Counts bad keys by address, minute by minute. Loopback is exempt: it is the operator's own machine. */
export class AuthFailures {
  readonly #clock: Clock
  readonly #perMinuteMax: number
  readonly #secretKeys: Pick<SecretKeys, 'hasChecksum'>
  readonly #message: string
  readonly #windows = new BoundedMap<string, { startedAt: number; failures: number }>(addressesMax)

  /** `message` is what the error says for a bad or a missing key. */
  constructor(parts: {
    clock: Clock
    authFailuresPerMinute: number
    secretKeys: Pick<SecretKeys, 'hasChecksum'>
    message: string
  }) {
    this.#clock = parts.clock
    this.#perMinuteMax = parts.authFailuresPerMinute
    this.#secretKeys = parts.secretKeys
    this.#message = parts.message
  }

  /** Throws where the address has to wait before it tries an unknown key. A key with our checksum may be tried. */
  assertMayTry(key: string, address: Address): void {
    const waitSeconds = this.#waitSeconds(address())
    if (waitSeconds === 0 || this.#secretKeys.hasChecksum(key)) return
    throw new GatewayError('too-many', 'Too many requests with a bad key.', { retryAfterSeconds: waitSeconds })
  }

  /** The error for a bad key. Counts it against the address. */
  refusal(address: Address): GatewayError {
    this.#count(address())
    return new GatewayError('unauthenticated', this.#message)
  }

  #count(address: string): void {
    if (isLoopback(address)) return
    const now = this.#clock.monotonic()
    const window = this.#windows.get(address)
    if (window === undefined || now - window.startedAt >= windowMs) {
      this.#windows.set(address, { startedAt: now, failures: 1 })
    } else window.failures++
  }

  /** How long this address has to wait until it may try unknown keys again, or 0. */
  #waitSeconds(address: string): number {
    const window = this.#windows.get(address)
    if (window === undefined || window.failures < this.#perMinuteMax) return 0
    const left = window.startedAt + windowMs - this.#clock.monotonic()
    return left <= 0 ? 0 : left / 1000
  }
}

function isLoopback(address: string): boolean {
  return address === '::1' || /^(?:::ffff:)?127\./.test(address)
}
