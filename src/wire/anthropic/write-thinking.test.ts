import { describe, expect, test } from 'bun:test'
import type { AssistantBlock, Conversation, UserBlock } from '../../capabilities/conversation.ts'
import { alwaysLadder, assistant, newLadder, oldLadder, said, tool, user, write } from './testing.ts'
import type { AskTarget } from './write-ask.ts'

const isNew = { efforts: newLadder }
// The models of 4.6 think adaptively and still take what later ones refuse.
const isBetween = { efforts: newLadder.filter((effort) => effort !== 'xhigh') }

const call: AssistantBlock = { kind: 'tool-call', id: 'a', name: 'f', argumentsText: '{}' }
const result: UserBlock = { kind: 'tool-result', callId: 'a', blocks: [], isError: false }

type Thinking = Conversation['thinking']

function think(thinking: Thinking, more: Partial<Conversation> = {}, on: Partial<AskTarget> = {}): unknown {
  const body = write({ ...more, ...(thinking !== undefined && { thinking }) }, on)
  return { thinking: body['thinking'], output_config: body['output_config'] }
}

const budget = (tokens: number) => ({ thinking: { type: 'enabled', budget_tokens: tokens } })
const adaptive = (effort?: string, display = 'summarized') => ({
  thinking: { type: 'adaptive', display },
  ...(effort !== undefined && { output_config: { effort } }),
})

function sampling(fields: Partial<Conversation>, on: Partial<AskTarget> = {}): unknown {
  const { temperature, top_p, top_k } = write(fields, on)
  return { temperature, top_p, top_k }
}

const loop = (...blocks: AssistantBlock[]) => [user(said('Hi')), assistant(...blocks, call), user(result)]

describe('sampling', () => {
  test.each([
    [{ temperature: 1.7 }, { temperature: 1 }],
    [{ temperature: 0.3, topP: 0.5 }, { temperature: 0.3 }],
    [
      { topP: 0.5, topK: 4 },
      { top_p: 0.5, top_k: 4 },
    ],
  ])('the sampling %j is written only for older models, and not beside thinking', (fields, written) => {
    expect(write(fields, isNew)).toEqual(write({}, isNew))
    for (const on of [{}, isBetween]) {
      expect(sampling(fields, on)).toEqual(written)
      expect(sampling({ ...fields, thinking: { effort: 'none', isShown: true } }, on)).toEqual(written)
      expect(sampling({ ...fields, thinking: { effort: 'low', isShown: true } }, on)).toEqual({})
    }
  })
})

describe('thinking', () => {
  test.each([
    [undefined, {}],
    [{ effort: 'none', isShown: true }, { thinking: { type: 'disabled' } }],
    [{ effort: 'minimal', isShown: true }, budget(1_024)],
    [{ effort: 'low', isShown: true }, budget(2_048)],
    [{ effort: 'high', isShown: true }, budget(8_192)],
    [{ isShown: true }, budget(8_192)],
    [{ budget: 3_000, isShown: true }, budget(3_000)],
    [{ budget: 10, isShown: true }, budget(1_024)],
    [{ effort: 'low', isShown: false }, { thinking: { ...budget(2_048).thinking, display: 'omitted' } }],
  ] as const)('thinking is written as a budget for older models: %j', (thinking, written) => {
    expect(think(thinking)).toEqual(written)
  })

  test.each([
    [undefined, {}],
    [{ effort: 'none', isShown: true }, { thinking: { type: 'disabled' } }],
    [{ effort: 'minimal', isShown: true }, adaptive('low')],
    [{ effort: 'xhigh', isShown: true }, adaptive('xhigh')],
    [{ isShown: true }, adaptive()],
    [{ isShown: false }, adaptive(undefined, 'omitted')],
    [{ budget: 1_500, isShown: true }, adaptive('low')],
    [{ budget: 5_000, isShown: true }, adaptive('medium')],
    [{ budget: 9_000, isShown: true }, adaptive('high')],
  ] as const)('thinking is written as an adaptive effort for newer models: %j', (thinking, written) => {
    expect(think(thinking, {}, isNew)).toEqual(written)
  })

  test.each([
    [{ effort: 'xhigh', isShown: true }, adaptive('high')],
    [{ effort: 'max', isShown: true }, adaptive('max')],
  ] as const)('a model that has max but not xhigh gets high in place of xhigh: %j', (thinking, written) => {
    expect(think(thinking, {}, { efforts: [...oldLadder, 'max'] })).toEqual(written)
  })

  test.each([
    [{ efforts: newLadder, rules: ['rests-between-tools'] }, { thinking: { type: 'between_tools' } }],
    [{ efforts: alwaysLadder }, { output_config: { effort: 'low' } }],
    [{ efforts: oldLadder.slice(1) }, {}],
  ] as const)('thinking is switched off as far as the model allows it: %j', (on, written) => {
    expect(think({ effort: 'none', isShown: true }, {}, on)).toEqual(written)
  })

  test('the thinking budget stays within the client’s own output cap', () => {
    expect(think({ effort: 'high', isShown: true }, { outputTokensMax: 2_000 })).toEqual(budget(1_600))
    expect(think({ effort: 'high', isShown: true }, { outputTokensMax: 1_025 })).toEqual(budget(1_024))
    expect(think({ effort: 'high', isShown: true }, { outputTokensMax: 1_024 })).toEqual({})
  })

  test('the thinking field is left out where a tool call is forced', () => {
    const forced = { tools: [tool], toolChoice: 'required' as const }
    expect(think({ effort: 'high', isShown: true }, forced)).toEqual({})
    expect(think({ effort: 'high', isShown: true }, forced, isNew)).toEqual({
      output_config: { effort: 'high' },
    })
  })

  test('a call that the model refuses to be forced to does not switch thinking off', () => {
    const forced = { tools: [tool], toolChoice: 'required' as const }
    const on = { efforts: alwaysLadder, rules: ['refuses-forced-calls'] } as const
    expect(think({ effort: 'high', isShown: true }, forced, on)).toEqual(adaptive('high'))
  })

  test('a tool loop gets a thinking budget only if it began with signed thinking', () => {
    const low = { effort: 'low', isShown: true } as const
    expect(think(low, { tools: [tool], turns: loop() })).toEqual({})
    expect(think(low, { tools: [tool], turns: loop({ kind: 'thinking', text: 'unsigned' }) })).toEqual({})
    const signed = loop({ kind: 'thinking', text: 'Hm', signature: 'Eq' })
    expect(think(low, { tools: [tool], turns: signed })).toEqual(budget(2_048))
    expect(think(low, { tools: [tool], turns: [...loop(), assistant(said('Done')), user(said('Thanks'))] })).toEqual(
      budget(2_048),
    )
    expect(think(low, { turns: [user(said('Hi')), assistant(said('Once'))] })).toEqual({})
    expect(think(low, { tools: [tool], turns: loop() }, isNew)).toEqual(adaptive('low'))
  })
})

describe('thinking that is bound to its conversation', () => {
  const on = { efforts: newLadder, rules: ['binds-thinking'] } as const
  const turns = loop({ kind: 'thinking', text: 'Hm', signature: 'Eq' })
  const dropped = { block_binding: { prefix_mismatch_behavior: 'drop_block' } }

  test.each([
    [undefined, { thinking: { type: 'adaptive', display: 'omitted', ...dropped } }],
    [
      { effort: 'low', isShown: true },
      { thinking: { type: 'adaptive', display: 'summarized', ...dropped }, output_config: { effort: 'low' } },
    ],
  ] as const)('it is to be dropped where the conversation has changed: %j', (thinking, written) => {
    expect(think(thinking, { tools: [tool], turns }, on)).toEqual(written)
    expect(think(thinking, { tools: [tool], turns: loop() }, on)).toEqual(think(thinking, { tools: [tool] }, isNew))
  })

  test.each([[{ thinking: { effort: 'none', isShown: true } }], [{ toolChoice: 'required' }]] as const)(
    'it is left out where thinking is switched off or a call is forced: %j',
    (fields) => {
      const body = write({ tools: [tool], turns, ...fields }, on)
      expect(body).toEqual(write({ tools: [tool], turns: loop(), ...fields }, isNew))
    },
  )
})

describe('the format of the answer', () => {
  test('rules of a schema that the vendor cannot enforce are put into descriptions', () => {
    const schema = {
      type: 'object',
      properties: {
        a: { type: 'string', minLength: 3, description: 'A name.' },
        b: { type: 'array', items: { type: 'object', properties: {} }, minItems: 1, maxItems: 5 },
        c: {
          oneOf: [
            { type: 'string', format: 'email' },
            { type: 'string', format: 'made-up' },
          ],
        },
      },
      required: ['a'],
      additionalProperties: true,
    }
    expect(write({ format: { kind: 'schema', name: 'x', schema } })['output_config']).toEqual({
      format: {
        type: 'json_schema',
        schema: {
          type: 'object',
          properties: {
            a: { type: 'string', description: 'A name.\n\n{minLength: 3}' },
            b: {
              type: 'array',
              items: { type: 'object', properties: {}, additionalProperties: false },
              minItems: 1,
              description: '{maxItems: 5}',
            },
            c: {
              anyOf: [
                { type: 'string', format: 'email' },
                { type: 'string', description: '{format: "made-up"}' },
              ],
            },
          },
          required: ['a'],
          additionalProperties: false,
        },
      },
    })
  })

  test('JSON without a schema is asked for in the instructions', () => {
    expect(JSON.stringify(write({ format: { kind: 'json' } })['system'])).toContain('one JSON object')
  })

  test.each([
    ['values of one type under any name', { type: 'object', additionalProperties: { type: 'number' } }, false],
    ['some listed properties beside them', { type: 'object', properties: {}, additionalProperties: {} }, false],
    ['names that follow a pattern', { type: 'object', properties: {}, patternProperties: { '^x': {} } }, false],
    ['an object of any kind', { type: ['object', 'null'] }, false],
    ['an object without properties', { type: 'object', additionalProperties: false }, true],
    ['an object with an empty list of properties', { type: 'object', properties: {} }, true],
  ])('an answer with %s is asked for in the instructions if the vendor would leave it empty', (_name, part, isHeld) => {
    const schema = { type: 'object', properties: { a: { type: 'array', items: part } }, required: ['a'] }
    const written = write({ format: { kind: 'schema', name: 'x', schema } })
    expect(written['output_config'] !== undefined).toBe(isHeld)
    expect((JSON.stringify(written['system']) ?? '').includes('JSON of this schema')).toBe(!isHeld)
  })
})
