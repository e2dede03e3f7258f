import Registry from 'prom-client/lib/registry.js'
import { Buckets } from './buckets.ts'
import { metrics, type MetricKey } from './names.ts'
import type { Readers } from './read.ts'

/** All metrics of one gateway, read at a scrape. Two gateways in one process do not share any. */
export function makeRegistry(readers: Readers): Registry {
  const registry = new Registry()
  for (const key of Object.keys(metrics) as MetricKey[]) {
    const { name, help, kind } = metrics[key]
    // Nothing is awaited before the values are read, so that all metrics of a scrape are of the same moment.
    const get = async () => ({ name, help, type: kind, values: [...valuesOf(name, readers[key]())] })
    registry.registerMetric({ name, get })
  }
  return registry
}

type Samples = Iterable<readonly [Readonly<Record<string, string>>, number | Buckets]>

function* valuesOf(name: string, samples: Samples) {
  for (const [labels, value] of samples) {
    if (value instanceof Buckets) yield* bucketsOf(name, labels, value)
    else yield { labels, value }
  }
}

const msPerSecond = 1000

/** Cumulative, as scrapers expect: how many values were at most each bound. */
function* bucketsOf(name: string, labels: Readonly<Record<string, string>>, { bounds, counts, sum }: Buckets) {
  let count = 0
  for (const [i, counted] of counts.entries()) {
    count += counted
    const bound = bounds[i]
    const le = bound === undefined ? '+Inf' : String(bound / msPerSecond)
    yield { labels: { ...labels, le }, value: count, metricName: `${name}_bucket` }
  }
  yield { labels, value: sum / msPerSecond, metricName: `${name}_sum` }
  yield { labels, value: count, metricName: `${name}_count` }
}
