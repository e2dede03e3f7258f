/** One file of the package, which describes only its index. */
declare module 'rate-limiter-flexible/lib/RateLimiterMemory.js' {
  import type { RateLimiterMemory } from 'rate-limiter-flexible'

  const made: typeof RateLimiterMemory
  export = made
}
