/** The end of a block of the prompt. `lifetime` is set where the request marks the block to be cached. */
export type Mark = { readonly tokens: number; readonly fingerprint: number; readonly lifetime?: Lifetime }

export type Lifetime = '5m' | '1h'

export type CacheUse = { readonly read: number; readonly write5m: number; readonly write1h: number }

/** The prompt cache of vendors that cache only what the request marks, for the lifetime it asks for. */
export type MarkedCache = {
  /** What the prompt reads from and writes to the cache. Remembers the marks for the next call. */
  use(owner: string, marks: readonly Mark[]): CacheUse
}

const tokensMin = 1_024
// The vendor searches at most this many blocks before a mark for an older entry.
const blocksBack = 20
const entriesMax = 200_000
const lifetimesMs: Readonly<Record<Lifetime, number>> = { '5m': 300_000, '1h': 3_600_000 }

export function createMarkedCache(now: () => number = Date.now): MarkedCache {
  // Insertion order is age: the oldest entry is dropped first when the cache is full.
  const entries = new Map<string, { until: number; lifetime: Lifetime }>()

  function isKept(name: string): boolean {
    const entry = entries.get(name)
    return entry !== undefined && entry.until > now()
  }
  function keep(name: string, lifetime: Lifetime): void {
    entries.delete(name)
    entries.set(name, { until: now() + lifetimesMs[lifetime], lifetime })
  }

  return {
    use(owner, marks) {
      const nameOf = ({ fingerprint, tokens }: Mark): string => `${owner}\n${tokens}\n${fingerprint}`
      const wanted = marks.flatMap((mark, at) => (mark.lifetime && mark.tokens >= tokensMin ? [at] : []))
      let hit: Mark | undefined
      for (const at of wanted) {
        const reach = marks.slice(Math.max(0, at - blocksBack), at + 1)
        const found = reach.findLast((mark) => mark.tokens >= tokensMin && isKept(nameOf(mark)))
        if (found && found.tokens > (hit?.tokens ?? 0)) hit = found
      }
      // Reading an entry restarts its lifetime.
      if (hit) keep(nameOf(hit), entries.get(nameOf(hit))?.lifetime ?? '5m')
      const read = hit?.tokens ?? 0
      // Lifetimes only get shorter along the prompt: first the part kept for an hour, then the rest up to the last
      // mark.
      let hourEnd = read
      let end = read
      for (const at of wanted) {
        const mark = marks[at]
        if (!mark?.lifetime || mark.tokens < read) continue
        if (mark.tokens > read || !isKept(nameOf(mark))) keep(nameOf(mark), mark.lifetime)
        if (mark.lifetime === '1h') hourEnd = Math.max(hourEnd, mark.tokens)
        end = Math.max(end, mark.tokens)
      }
      for (const oldest of entries.keys()) {
        if (entries.size <= entriesMax) break
        entries.delete(oldest)
      }
      return { read, write1h: hourEnd - read, write5m: end - hourEnd }
    },
  }
}
