import { EventSplitter } from '../src/base/sse.ts'
import { hash } from 'node:crypto'
import { frameChunk } from '../src/base/http/chunk.ts'
import { parseBody } from '../src/base/json.ts'
import { macFor } from '../src/base/secret.ts'
import { holdFor, priceOf } from '../src/billing/price.ts'
import type { ChatTraits } from '../src/capabilities/chat.ts'
import { buildCatalogue, loadFamilies } from '../src/catalogue/load.ts'
import { readOverrides } from '../src/catalogue/schema.ts'
import { openaiChat } from '../src/wire/openai/chat.ts'
import { passAsk } from '../src/wire/openai/pass-ask.ts'
import { benchKey, benchModel, plainAnswer, plainBody, streamBody, streamEvents } from './fixtures.ts'

/**
 * `npx bun bench/stages.ts`: prints what each of our steps costs in a hot loop, in microseconds. In a running gateway,
 * with cold caches and garbage collection, expect three to five times as much; see docs/performance.md.
 */
const warmRuns = 30_000
const slices = 15
const runsPerSlice = 3_000

/** Takes the fastest slice, because a disturbance makes a loop slower, never faster. */
function microseconds(run: () => unknown): number {
  for (let i = 0; i < warmRuns; i++) run()
  let best = Number.POSITIVE_INFINITY
  for (let slice = 0; slice < slices; slice++) {
    const startedAt = performance.now()
    for (let i = 0; i < runsPerSlice; i++) run()
    best = Math.min(best, ((performance.now() - startedAt) * 1000) / runsPerSlice)
  }
  return best
}

const catalogue = buildCatalogue({
  families: loadFamilies(),
  overrides: readOverrides([]),
  exchange: {},
  sandbox: true,
  at: Date.now(),
})
const model = catalogue.models.get(benchModel)
if (model === undefined) throw new Error(`the catalogue has no ${benchModel}`)
const { prices } = model
const traits: ChatTraits = { ...model, id: benchModel, sells: (unit) => prices.rates[unit] !== undefined }

const limits = { depthMax: 128, keysMax: 100_000 }
const read = (text: string) => {
  const body = parseBody(text, limits) as Parameters<typeof openaiChat.readAsk>[0]['body']
  return {
    body,
    ask: openaiChat.readAsk({ body, bodyBytes: text.length, files: [], header: () => null }, () => traits),
  }
}
const plain = read(plainBody)
const streamed = read(streamBody)
const mac = macFor(Buffer.alloc(32, 7), 'tenant-label')
const target = {
  upstreamModel: benchModel,
  reasoning: false,
  outputCap: 'either',
  usageInStream: 'asked',
  storesByDefault: true,
  metadata: 'stored',
  pastReasoning: 'ignored',
  takesDeveloper: true,
  leftOut: [],
  messageLeftOut: [],
  seedField: 'seed',
  efforts: [],
  thinkingSwitch: 'effort',
  namespaced: (label: string) => label,
} as const
const answer = Buffer.from(plainAnswer)
const usage = { input: 241, output: 200, request: 1 }
const [, event = ''] = streamEvents(1)
const chunk = new TextEncoder().encode(event)
const workbench = Buffer.allocUnsafeSlow(16 * 1024)
const splitter = new EventSplitter(1024 * 1024)
const stream = openaiChat.passStream(streamed.ask)

const stages: Record<string, () => unknown> = {
  'key: fingerprint': () => hash('sha256', benchKey),
  'body: scan and parse 1.4 KB': () => parseBody(plainBody, limits),
  'body: validate and read the facts': () =>
    openaiChat.readAsk({ body: plain.body, bodyBytes: plainBody.length, files: [], header: () => null }, () => traits),
  'hold: the most it can cost': () => holdFor({ input: 1_400, output: 512 }, prices),
  'ask: the vendor’s body': () => passAsk(plain.ask, target),
  'ask: a user label made the account’s own': () => mac('acc_0123456789/customer-4711').toString('base64url'),
  'answer: read 700 B, replace the model': () => openaiChat.passAnswer(plain.ask, answer),
  'sale: price and vendor cost': () => [priceOf(usage, prices), priceOf(usage, model.costs)],
  'event, usual: one walk, replace the model, frame as a chunk': () => {
    const shown = splitter.isAtStart ? stream.takeUsual?.(chunk) : undefined
    return shown !== undefined && frameChunk(shown, workbench)
  },
  'event, any other: find its end': () => splitter.push(chunk),
  'event, any other: look for usage, error and finish, replace the model': () => stream.take(chunk),
}

for (const [name, run] of Object.entries(stages)) console.log(name.padEnd(72), microseconds(run).toFixed(2))
