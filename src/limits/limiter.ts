import type { RateLimiterRes } from 'rate-limiter-flexible'
// The package's index loads a client for every database it supports, which costs 20 ms of each start.
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js'
import type { Clock } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import { NamedCounts } from '../base/named-counts.ts'
import type { KeyLimits } from '../store/schema.ts'

/** Sets a header of the response, whether it succeeds or fails. */
export type SetHeader = (header: string, value: string) => void

/** A request that is within its key's limits. */
export type Pass = {
  /** Counts the request's estimated tokens, if the key limits them; rejects if the minute has no room for them. */
  spend(asked: { estimateInput(): number }): Promise<void> | undefined
  /** The request is over: frees its place, and corrects the estimate to what was used. Further calls do nothing. */
  leave(tokensUsed: number): void
}

export type Limiter = {
  /** Throws `too-many` if the key has used up its requests of this minute, or if all its places are taken. */
  enter(keyId: string, limits: KeyLimits | null, setHeader: SetHeader): Promise<Pass>
}

const windowSeconds = 60
// The counters only count: limits differ from key to key and are checked here.
const counter = { points: Number.MAX_SAFE_INTEGER, duration: windowSeconds }
const placeRetrySeconds = 1

const letIn = Promise.resolve<Pass>({ spend: () => undefined, leave() {} })

/** Each node counts for itself, in memory. */
export function makeLimiter(clock: Pick<Clock, 'monotonic'>): Limiter {
  const counters = { requests: new RateLimiterMemory(counter), tokens: new RateLimiterMemory(counter) }
  const places = new NamedCounts()

  function takePlace(keyId: string, concurrent: number): void {
    if (places.of(keyId) >= concurrent) {
      const message = `The concurrent requests of this key are limited to ${concurrent}, and as many are running.`
      throw new GatewayError('too-many', message, { retryAfterSeconds: placeRetrySeconds })
    }
    places.add(keyId, 1)
  }

  /** Gives how many milliseconds are left of the minute in which the tokens were counted. */
  async function countTokens(keyId: string, perMinute: number, tokens: number, setHeader: SetHeader): Promise<number> {
    const estimated = `This request is estimated at ${tokens} tokens`
    if (tokens > perMinute) {
      const message = `${estimated}, and this key may use ${perMinute} a minute: it is too large for this key.`
      throw new GatewayError('too-many', message, { hopeless: true })
    }
    const counted = await counters.tokens.consume(keyId, tokens)
    if (counted.consumedPoints <= perMinute) {
      report(setHeader, 'tokens', perMinute, counted)
      return msLeft(counted)
    }
    const without = await counters.tokens.reward(keyId, tokens)
    report(setHeader, 'tokens', perMinute, without)
    const message = `${estimated}; this key has ${leftOf(perMinute, without)} of its ${perMinute} tokens per minute left.`
    throw tooMany(message, counted)
  }

  function passOf(keyId: string, limits: KeyLimits, setHeader: SetHeader): Pass {
    const { tokensPerMinute, concurrent } = limits
    let counted = 0
    let countedUntil = 0
    let isInside = true

    async function spend(perMinute: number, estimated: number): Promise<void> {
      const tokens = Math.max(1, estimated)
      countedUntil = clock.monotonic() + (await countTokens(keyId, perMinute, tokens, setHeader))
      counted = tokens
    }

    return {
      spend: (asked) => (tokensPerMinute === undefined ? undefined : spend(tokensPerMinute, asked.estimateInput())),
      leave(tokensUsed) {
        if (!isInside) return
        isInside = false
        if (concurrent !== undefined) places.add(keyId, -1)
        if (tokensPerMinute === undefined || tokensUsed === counted) return
        // Not awaited, because in memory this is done at once and cannot fail.
        if (tokensUsed > counted) void counters.tokens.penalty(keyId, tokensUsed - counted)
        // Tokens given back in a later minute would let the key use more than its limit in that minute.
        else if (clock.monotonic() < countedUntil) void counters.tokens.reward(keyId, counted - tokensUsed)
      },
    }
  }

  async function enter(keyId: string, limits: KeyLimits, setHeader: SetHeader): Promise<Pass> {
    const { requestsPerMinute, tokensPerMinute, concurrent } = limits
    if (tokensPerMinute !== undefined) report(setHeader, 'tokens', tokensPerMinute, await counters.tokens.get(keyId))
    if (requestsPerMinute !== undefined) {
      report(setHeader, 'requests', requestsPerMinute, await counters.requests.get(keyId))
    }
    // The place comes first: clients retry every second until one is free, which must not use up their minute.
    if (concurrent !== undefined) takePlace(keyId, concurrent)
    if (requestsPerMinute !== undefined) {
      const counted = await counters.requests.consume(keyId)
      report(setHeader, 'requests', requestsPerMinute, counted)
      if (counted.consumedPoints > requestsPerMinute) {
        if (concurrent !== undefined) places.add(keyId, -1)
        throw tooMany(`The requests of this key are limited to ${requestsPerMinute} a minute.`, counted)
      }
    }
    return passOf(keyId, limits, setHeader)
  }

  return {
    enter: (keyId, limits, setHeader) => (limits === null ? letIn : enter(keyId, limits, setHeader)),
  }
}

function tooMany(message: string, counted: RateLimiterRes): GatewayError {
  return new GatewayError('too-many', message, { retryAfterSeconds: msLeft(counted) / 1000 })
}

/** The counters use the wall clock but end by a timer: if the clock is set back, a minute still lasts only a minute. */
function msLeft({ msBeforeNext }: RateLimiterRes): number {
  return Math.min(msBeforeNext, windowSeconds * 1000)
}

function report(
  setHeader: SetHeader,
  what: 'requests' | 'tokens',
  limit: number,
  counted: RateLimiterRes | null,
): void {
  setHeader(`x-ratelimit-limit-${what}`, String(limit))
  setHeader(`x-ratelimit-remaining-${what}`, String(leftOf(limit, counted)))
  setHeader(`x-ratelimit-reset-${what}`, duration(counted === null ? 0 : msLeft(counted)))
}

function leftOf(limit: number, counted: RateLimiterRes | null): number {
  return Math.max(0, limit - (counted?.consumedPoints ?? 0))
}

/** Writes a duration as the common protocol does: `12ms`, `1s`, `6m0s`. */
function duration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.ceil(ms))}ms`
  const seconds = Math.ceil(ms / 1000)
  return seconds < 60 ? `${seconds}s` : `${Math.floor(seconds / 60)}m${seconds % 60}s`
}
