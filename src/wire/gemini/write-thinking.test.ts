import { describe, expect, test } from 'bun:test'
import type { Thinking } from '../../capabilities/conversation.ts'
import { writeThinking } from './write-thinking.ts'

const all = ['minimal', 'low', 'medium', 'high']
const write = (thinking: Partial<Thinking>, upstreamModel: string, efforts: readonly string[]) =>
  writeThinking({ thinking: { isShown: false, ...thinking } }, { upstreamModel, efforts })

describe('thinking budgets of the second generation', () => {
  test.each([
    ['none', 0],
    ['minimal', 1_024],
    ['low', 1_024],
    ['medium', 8_192],
    ['high', 24_576],
    ['xhigh', 24_576],
    ['max', 24_576],
  ] as const)('the effort %s becomes a budget', (effort, thinkingBudget) => {
    expect(write({ effort }, 'gemini-2.5-flash', ['none', ...all])).toEqual({ thinkingBudget })
  })

  test.each([
    ['gemini-2.5-flash', 2_000, 2_000],
    ['gemini-2.5-flash', 100_000, 24_576],
    ['gemini-2.5-pro', 100_000, 32_768],
    ['gemini-2.5-pro', 1, 128],
    ['gemini-2.5-flash-lite', 100, 512],
  ])('%s gets the budget %d as %d', (model, budget, thinkingBudget) => {
    expect(write({ budget }, model, all)).toEqual({ thinkingBudget })
  })

  test.each([
    ['gemini-2.5-pro', all, 128],
    ['gemini-2.5-flash', all, 1],
    ['gemini-2.5-flash', ['none', ...all], 0],
    ['gemini-2.5-pro', [], 128],
    ['gemini-2.5-flash', [], 0],
  ] as const)(
    '%s with the efforts %j gets the budget %d if thinking is turned off',
    (model, efforts, thinkingBudget) => {
      expect(write({ effort: 'none' }, model, efforts)).toEqual({ thinkingBudget })
      expect(write({ effort: 'none', budget: 4_000 }, model, efforts)).toEqual({ thinkingBudget })
    },
  )

  test('a budget takes precedence over an effort', () => {
    expect(write({ effort: 'low', budget: 4_000 }, 'gemini-2.5-pro', all)).toEqual({ thinkingBudget: 4_000 })
  })
})

describe('thinking levels of the third generation', () => {
  test.each([
    ['minimal', all, 'MINIMAL'],
    ['medium', all, 'MEDIUM'],
    ['none', all, 'MINIMAL'],
    ['max', all, 'HIGH'],
    ['minimal', ['low', 'high'], 'LOW'],
    ['medium', ['low', 'high'], 'LOW'],
    ['xhigh', ['low', 'high'], 'HIGH'],
    ['medium', [], 'MEDIUM'],
    // A model with unknown levels gets the lowest level that nearly all models have.
    ['minimal', [], 'LOW'],
    ['none', [], 'LOW'],
  ] as const)('the effort %s of %j becomes the level %s', (effort, efforts, thinkingLevel) => {
    expect(write({ effort }, 'gemini-3-pro-preview', efforts)).toEqual({ thinkingLevel })
    expect(write({ effort }, 'gemini-flash-latest', efforts)).toEqual({ thinkingLevel })
  })

  test.each([
    [1_024, 'LOW'],
    [4_000, 'MEDIUM'],
    [20_000, 'HIGH'],
  ])('a budget of %d becomes the level %s', (budget, thinkingLevel) => {
    expect(write({ budget }, 'gemini-3.5-flash', all)).toEqual({ thinkingLevel })
  })

  test('an effort takes precedence over a budget', () => {
    expect(write({ effort: 'low', budget: 20_000 }, 'gemini-3.5-flash', all)).toEqual({ thinkingLevel: 'LOW' })
  })
})

describe('reasoning in the answer', () => {
  test('reasoning is included only if it is asked for and thinking is on', () => {
    expect(write({ isShown: true }, 'gemini-2.5-pro', all)).toEqual({ includeThoughts: true })
    expect(write({ isShown: true, effort: 'none' }, 'gemini-2.5-flash', ['none'])).toEqual({ thinkingBudget: 0 })
    expect(write({}, 'gemini-2.5-pro', all)).toBeUndefined()
    expect(writeThinking({}, { upstreamModel: 'gemini-2.5-pro', efforts: all })).toBeUndefined()
  })

  test.each([
    ['gemini-2.5-flash', all, { includeThoughts: true }],
    ['gemini-3-pro-preview', all, { includeThoughts: true }],
    ['gemini-3.5-flash-lite', all, { includeThoughts: true }],
    ['gemini-2.5-flash-lite', all, undefined],
    ['gemini-2.5-flash-image', [], undefined],
  ] as const)(
    'what %s with the efforts %j thinks by itself is included where it does',
    (upstreamModel, efforts, config) => {
      expect(writeThinking({ showsOwnThinking: true }, { upstreamModel, efforts })).toEqual(config)
    },
  )
})
