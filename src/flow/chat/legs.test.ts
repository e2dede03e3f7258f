import { describe, expect, test } from 'bun:test'
import { newAttemptId } from '../../base/ids.ts'
import { chatAsk, type StreamFacts } from '../../capabilities/chat.ts'
import { plainModel } from '../../capabilities/testing.ts'
import type { ChatRouted } from './chat.ts'
import { legOfAnswer, legOfStream } from './legs.ts'
import { ReplyFacts } from './translate.ts'

const traits = { ...plainModel, contextTokens: 1_000, outputTokensMax: 100 }
const ask = chatAsk(
  {
    protocol: 'openai',
    model: 'm',
    stream: true,
    usageShown: true,
    choices: 1,
    outputTokensMax: 100,
    inputTokensMax: 1_000,
    searchesMax: 5,
    native: {},
    headers: {},
  },
  traits,
)
// The leg reads only these three fields.
const routed = { ask, attemptId: newAttemptId(), codec: { estimateInput: () => 10 } } as unknown as ChatRouted

const cutOff: StreamFacts = {
  usage: undefined,
  finished: false,
  ended: false,
  failure: undefined,
  outputEvents: 3,
  outputBytes: 40,
  images: 0,
}
const countOf = (facts: Partial<StreamFacts>) => legOfStream(routed, { ...cutOff, ...facts }).count()

describe('the usage of a stream that was cut', () => {
  test("the output is the greater of the vendor's count and our estimate of what was delivered", () => {
    const usage = { input: 7, output: 0 }
    expect(countOf({ usage })).toEqual({ usage: { input: 7, output: 10 }, basis: 'estimated' })
    expect(countOf({ usage: { ...usage, output: 25 } })?.usage.output).toBe(25)
    expect(countOf({ usage, finished: true })).toEqual({ usage, basis: 'vendor' })
    expect(countOf({ usage, ended: true })).toEqual({ usage, basis: 'vendor' })
  })

  test('the estimate never exceeds the output limit of all choices together', () => {
    const two = { ...routed, ask: { ...ask, choices: 2 } }
    const facts = { ...cutOff, outputEvents: 150, outputBytes: 600 }
    expect(legOfStream(two, facts).count()?.usage.output).toBe(150)
    expect(legOfStream(two, { ...facts, outputEvents: 999 }).count()?.usage.output).toBe(200)
    expect(legOfStream(routed, facts).count()?.usage.output).toBe(100)
    const answered = (estimate: number) =>
      legOfAnswer(two, { usage: undefined, estimateOutput: () => estimate }).count()
    expect(answered(150)).toEqual({ usage: { input: 10, output: 150 }, basis: 'estimated' })
    expect(answered(999)?.usage.output).toBe(200)
  })

  test('an image counts for its own tokens, within the same limit', () => {
    const large = { ...routed, ask: { ...ask, outputTokensMax: 5_000 } }
    const pictured = { ...cutOff, outputEvents: 2, outputBytes: 0, images: 2 }
    const usage = { input: 10, output: 2, imageOutput: 2_240 }
    expect(legOfStream(large, pictured).count()).toEqual({ usage, basis: 'estimated' })
    const counting = { input: 10, output: 0, imageOutput: 1_290 }
    expect(legOfStream(large, { ...pictured, images: 1, usage: counting }).count()?.usage).toEqual({
      ...counting,
      output: 2,
    })
    const together = { input: 10, output: 2_250 }
    expect(legOfStream(large, { ...pictured, usage: together }).count()?.usage).toEqual(together)
    const thought = { input: 10, output: 500, reasoning: 498 }
    const drawn = { ...thought, imageOutput: 2_240 }
    expect(legOfStream(large, { ...pictured, usage: thought }).count()?.usage).toEqual(drawn)
    expect(legOfStream(routed, pictured).count()?.usage).toEqual({ input: 10, output: 0, imageOutput: 100 })
    const answer = { usage: undefined, estimateOutput: () => 2, images: 2 }
    expect(legOfAnswer(large, answer).count()).toEqual({ usage, basis: 'estimated' })
    expect(legOfAnswer(routed, answer).count()?.usage).toEqual({ input: 10, output: 0, imageOutput: 100 })
  })

  test('an end without output and without a finish reason costs the customer nothing, and us what the vendor counted', () => {
    const usage = { input: 7, output: 3 }
    const silent = { ...cutOff, usage, outputEvents: 0, outputBytes: 0, ended: true }
    const leg = legOfStream(routed, silent)
    expect([leg.count(), leg.made?.()]).toEqual([undefined, { usage, basis: 'vendor' }])
    // With a finish reason it is an empty reply, which may have taken long reasoning, and is paid for.
    expect(legOfStream(routed, { ...silent, finished: true }).count()).toEqual({ usage, basis: 'vendor' })
  })

  test('searches that were made and the text they found are counted', () => {
    const hosted = { searches: 2, foundBytes: 400 }
    expect(countOf({ hosted, usage: { input: 7, webSearch: 0 } })).toEqual({
      usage: { input: 107, webSearch: 2, output: 10 },
      basis: 'estimated',
    })
    expect(countOf({ hosted })?.usage).toEqual({ input: 110, webSearch: 2, output: 10 })
    // Never more than the hold covers.
    const most = countOf({ hosted: { searches: 99, foundBytes: 9_999 }, usage: { input: 7, cachedInput: 3 } })
    expect(most?.usage).toEqual({ input: 997, cachedInput: 3, webSearch: 5, output: 10 })
    // Nor twice, where the vendor counts the searches itself.
    expect(countOf({ hosted, usage: { input: 7, output: 2 } })?.usage).toEqual({ input: 7, output: 10 })
    // The vendor's own count counts, once it has come.
    const usage = { input: 50, webSearch: 1, output: 4 }
    expect(countOf({ hosted, usage, finished: true })).toEqual({ usage, basis: 'vendor' })
  })
})

test('a search counts as made before the first word, and is charged from the first word on', () => {
  const facts = new ReplyFacts()
  const leg = legOfStream(routed, facts)
  expect(leg.made?.()).toBeUndefined()
  facts.note([
    { kind: 'usage-count', usage: { input: 7 } },
    { kind: 'hosted-tool-run', searches: 1, foundBytes: 0 },
    { kind: 'hosted-tool-run', searches: 0, foundBytes: 80 },
  ])
  const made = { usage: { input: 27, webSearch: 1 }, basis: 'estimated' } as const
  expect(leg.made?.()).toMatchObject(made)
  expect(leg.count()).toBeUndefined()
  facts.note([{ kind: 'text-delta', choice: 0, text: 'Roads' }])
  expect(leg.count()).toMatchObject(made)
})
