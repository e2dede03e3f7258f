/** One value as a scraper reads it. */
export type Sample = {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

export type Exposition = {
  readonly samples: readonly Sample[]
  /** The declared kind of each metric. */
  readonly kinds: ReadonlyMap<string, string>
  /** The value with exactly these labels; undefined if there is none. */
  value(name: string, labels?: Readonly<Record<string, string>>): number | undefined
  /** Every value of a metric, by its labels joined as text. */
  all(name: string): Record<string, number>
}

const metricName = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/
const sampleLine =
  /^(?<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?<labels>.*)\})? (?<value>[+-]?(?:Inf|NaN|[0-9.]+(?:e[+-]?\d+)?))$/
const oneLabel = /(?<label>[a-zA-Z_][a-zA-Z0-9_]*)="(?<text>(?:[^"\\\n]|\\["\\n])*)"(?:,|$)/y
const familyKinds = new Set(['counter', 'gauge', 'histogram'])

/** Reads Prometheus's text format, version 0.0.4, and throws for all that a scraper would refuse or merely tolerate. */
export function readExposition(text: string): Exposition {
  if (!text.endsWith('\n')) throw new Error('the last line has no end')
  const samples: Sample[] = []
  const kinds = new Map<string, string>()
  const helped = new Set<string>()
  const seen = new Set<string>()
  let family = ''
  for (const line of text.slice(0, -1).split('\n')) {
    if (line === '') continue
    const [, keyword, name = '', rest = ''] = /^# (HELP|TYPE) (\S+) (.+)$/.exec(line) ?? []
    if (keyword === 'HELP') {
      if (helped.has(name) || !metricName.test(name)) throw new Error(`odd help: ${line}`)
      helped.add(name)
      continue
    }
    if (keyword === 'TYPE') {
      if (kinds.has(name) || !helped.has(name) || !familyKinds.has(rest)) throw new Error(`odd type: ${line}`)
      kinds.set(name, rest)
      family = name
      continue
    }
    const sample = readSample(line)
    const parts = kinds.get(family) === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']
    if (!parts.some((part) => sample.name === family + part)) throw new Error(`not of ${family}: ${line}`)
    if (kinds.get(family) === 'counter' && !(sample.value >= 0)) throw new Error(`a counter below zero: ${line}`)
    const key = `${sample.name} ${keyOf(sample.labels)}`
    if (seen.has(key)) throw new Error(`twice: ${line}`)
    seen.add(key)
    samples.push(sample)
  }
  for (const [name, kind] of kinds) if (kind === 'histogram') checkHistogram(name, samples)
  return {
    samples,
    kinds,
    value: (name, labels = {}) =>
      samples.find((sample) => sample.name === name && keyOf(sample.labels) === keyOf(labels))?.value,
    all: (name) =>
      Object.fromEntries(
        samples
          .filter((sample) => sample.name === name)
          .map(({ labels, value }) => [Object.values(labels).join(' '), value]),
      ),
  }
}

function keyOf(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.entries(labels).toSorted(([a], [b]) => (a < b ? -1 : 1)))
}

function readSample(line: string): Sample {
  const found = sampleLine.exec(line)?.groups
  if (found === undefined) throw new Error(`no sample: ${line}`)
  const { name = '', labels: written = '', value = '' } = found
  const labels: Record<string, string> = {}
  oneLabel.lastIndex = 0
  while (oneLabel.lastIndex < written.length) {
    const { label = '', text = '' } = oneLabel.exec(written)?.groups ?? {}
    if (label === '' || label in labels) throw new Error(`odd labels: ${line}`)
    labels[label] = text.replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === 'n' ? '\n' : escaped))
  }
  return { name, labels, value: Number(value.replace('Inf', 'Infinity')) }
}

/** Bounds ascend, counts never decrease, and the last bucket holds everything. */
function checkHistogram(name: string, samples: readonly Sample[]): void {
  const groups = new Map<string, Sample[]>()
  for (const sample of samples.filter((each) => each.name === `${name}_bucket`)) {
    const { le: _, ...labels } = sample.labels
    const key = keyOf(labels)
    groups.set(key, [...(groups.get(key) ?? []), sample])
  }
  const counts = samples.filter((each) => each.name === `${name}_count`)
  if (counts.length !== groups.size) throw new Error(`${name}: buckets without a count, or the reverse`)
  for (const { labels, value } of counts) {
    const buckets = groups.get(keyOf(labels)) ?? []
    const bounds = buckets.map(({ labels: { le = '' } }) => Number(le.replace('Inf', 'Infinity')))
    if (!ascends(bounds) || bounds.at(-1) !== Number.POSITIVE_INFINITY) throw new Error(`${name}: odd bounds`)
    if (!ascends(buckets.map((bucket) => bucket.value)) || buckets.at(-1)?.value !== value) {
      throw new Error(`${name}: odd counts`)
    }
  }
}

function ascends(numbers: readonly number[]): boolean {
  return numbers.every((each, i) => i === 0 || each >= (numbers[i - 1] ?? 0))
}
