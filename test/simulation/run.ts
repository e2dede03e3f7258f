import { simulate } from './program.ts'

/**
 * Runs seeds until the time is up or one fails.
 *   npm run simulate -- --seconds 600     new seeds, for that long
 *   npm run simulate -- --seed 123        one seed again, with its story
 */
function main(words: readonly string[]): number {
  const seed = numberAfter(words, '--seed')
  if (seed !== undefined) {
    const { failures, story, counts } = simulate(seed)
    print([...story, ...failures.map((failure) => `FAILED ${failure}`), JSON.stringify(counts)])
    return failures.length === 0 ? 0 : 1
  }
  const seconds = numberAfter(words, '--seconds') ?? 60
  const endsAt = performance.now() + seconds * 1_000
  const first = numberAfter(words, '--from') ?? Math.floor(Math.random() * 2 ** 31)
  let next = first
  while (performance.now() < endsAt) {
    const { failures } = simulate(next)
    if (failures.length > 0) {
      print([`seed ${next} failed:`, ...failures, `again, with its story: npm run simulate -- --seed ${next}`])
      return 1
    }
    next++
  }
  print([`${next - first} seeds from ${first} on, none failed`])
  return 0
}

function numberAfter(words: readonly string[], name: string): number | undefined {
  const at = words.indexOf(name)
  return at === -1 ? undefined : Number(words[at + 1])
}

function print(lines: readonly string[]): void {
  process.stdout.write(`${lines.join('\n')}\n`)
}

process.exitCode = main(process.argv.slice(2))
