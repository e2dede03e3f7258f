/** Runs a limited number of functions at a time; the others wait in order. */
export type ConcurrencyLimit = { run<T>(work: () => Promise<T>): Promise<T> }

export function limitConcurrencyByChannel(atOnceMax: number): (channelId: string) => ConcurrencyLimit {
  const turns = new Map<string, ConcurrencyLimit>()
  return (channelId) => {
    const known = turns.get(channelId) ?? makeConcurrencyLimit(atOnceMax)
    turns.set(channelId, known)
    return known
  }
}

function makeConcurrencyLimit(atOnceMax: number): ConcurrencyLimit {
  let running = 0
  const waiting: (() => void)[] = []
  return {
    async run(work) {
      if (running >= atOnceMax) await new Promise<void>((resolve) => waiting.push(resolve))
      else running++
      try {
        return await work()
      } finally {
        const next = waiting.shift()
        if (next === undefined) running--
        else next()
      }
    },
  }
}
