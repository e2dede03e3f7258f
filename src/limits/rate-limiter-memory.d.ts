/** The package has types only for its index, and none for this file of it. */
declare module 'rate-limiter-flexible/lib/RateLimiterMemory.js' {
  import type { RateLimiterMemory } from 'rate-limiter-flexible'

  const made: typeof RateLimiterMemory
  export = made
}
