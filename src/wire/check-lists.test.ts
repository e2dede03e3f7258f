import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { z } from 'zod'
import { GatewayError } from '../base/errors.ts'
import { checkBy } from './check.ts'

const check = checkBy(
  z.looseObject({
    before: z.array(z.string()).nullish(),
    messages: z.array(z.looseObject({ n: z.number(), tags: z.array(z.string()).min(1).nullish() })).min(1),
    after: z.array(z.string()).nullish(),
  }),
)

type Body = {
  before?: unknown[]
  messages: { n: unknown; tags?: unknown[] }[]
  after?: unknown[]
}

function paramOf(body: unknown): string | undefined {
  try {
    check(body)
    return 'accepted'
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(GatewayError)
    return (thrown as GatewayError).details.param
  }
}

const texts = (count: number) => Array.from({ length: count }, () => 'x')

function body(lengths: { before: number; messages: number; tags: number; after: number }): Body {
  return {
    before: texts(lengths.before),
    messages: Array.from({ length: lengths.messages }, (_, n) => ({ n, tags: texts(lengths.tags) })),
    after: texts(lengths.after),
  }
}

describe('the error about a bad body', () => {
  test('the error names the exact place of a bad value, even far down a long list', () => {
    const length = fc.integer({ min: 1, max: 40 })
    const long = fc.integer({ min: 1, max: 3_000 })
    fc.assert(
      fc.property(long, length, length, long, fc.nat(), fc.constantFrom('before', 'n', 'tags', 'after'), (...given) => {
        const [before, messages, tags, after, place, where] = given
        const bad = body({ before, messages, tags, after })
        const at = place % messages
        const message = bad.messages[at]
        if (message === undefined) throw new Error('there is no such message')
        const expected = {
          before: `before[${place % before}]`,
          after: `after[${place % after}]`,
          n: `messages[${at}].n`,
        }
        if (where === 'tags') {
          message.tags?.splice(place % tags, 1, 7)
          expect(paramOf(bad)).toBe(`messages[${at}].tags[${place % tags}]`)
          return
        }
        if (where === 'n') message.n = 'seven'
        else bad[where]?.splice(place % (where === 'before' ? before : after), 1, 7)
        expect(paramOf(bad)).toBe(expected[where])
      }),
      { numRuns: 60 },
    )
  })

  test('the error never names a list only because the first look shortened it', () => {
    // The first list uses up the items of the first look, but every list after it keeps one.
    const bad = body({ before: 5_000, messages: 3_000, tags: 2, after: 1 })
    bad.after = ['x', 7]
    expect(paramOf(bad)).toBe('after[1]')
    bad.messages[2_999] = { n: 1, tags: [] }
    expect(['after[1]', 'messages[2999].tags']).toContain(paramOf(bad) ?? '')
  })

  test('an error about a list as a whole names the list', () => {
    expect(paramOf({ messages: [] })).toBe('messages')
    expect(paramOf({ messages: 'none' })).toBe('messages')
    expect(paramOf({ before: texts(5_000) })).toBe('messages')
  })
})

test('a good body is returned as it is', () => {
  const good = body({ before: 2_000, messages: 50, tags: 3, after: 10 })
  expect(check(good as never)).toBe(good as never)
})
