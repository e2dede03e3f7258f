import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { wholeOf } from '../../base/spliced.ts'
import { passStream } from './chat-stream.ts'
import { plainAsk } from './testing.ts'
import { UsualEvent, wordKeys } from './usual-event.ts'

/** What is read of an event, if it is usual. */
function readOf(event: string): { model: string; words: number } | undefined {
  const bytes = Buffer.from(event)
  const usual = new UsualEvent()
  if (!usual.read(bytes)) return undefined
  return { model: bytes.toString('utf8', usual.modelStart, usual.modelEnd), words: usual.wordBytes }
}

const head = '"id":"c-1","object":"chat.completion.chunk","created":1760000000,"model":"theirs-2026"'
const chunk = (delta: string, more = '', finish = 'null') =>
  `data: {${head},"choices":[{"index":0,"delta":${delta},"logprobs":null,"finish_reason":${finish}}]${more}}\n\n`

describe('an event is usual', () => {
  test.each([
    ['with a text', chunk('{"content":" word"}'), 5],
    ['with a role beside its text', chunk('{"role":"assistant","content":"Hi","refusal":null}'), 2],
    ['with other letters, quotes and line ends in its text', chunk(JSON.stringify({ content: '"日\\\n' })), 9],
    ['with more members', chunk('{"content":"a"}', ',"usage":null,"system_fingerprint":"fp","x":{"y":[1]}'), 1],
    ['with other members that begin like ours', chunk('{"content":"a","contents":"bb","models":"c"}'), 1],
    ['with a space after each colon', chunk('{"content":"a"}').replaceAll('":', '": ').replaceAll(',"', ', "'), 1],
    ['with its text before its model', `data: {"choices":[{"delta":{"content":"abc"}}],"model":"theirs-2026"}\n\n`, 3],
    ['with two texts', chunk('{"content":"ab"}').replace('}]', '},{"index":1,"delta":{"content":"c"}}]'), 3],
    ['with a list of what its text could have been', chunk('{"content":"a"}', ',"logprobs":{"content":[{}]}'), 1],
    ['with an empty text before its reasoning', chunk('{"content":"","reasoning_content":"Hm"}'), 2],
    ['with a text after its reasoning', chunk('{"reasoning":"Hm","content":"a"}'), 1],
    ['with reasoning under two names', chunk('{"reasoning":"Hmm","reasoning_content":"Hm"}'), 2],
    [
      'with another model before it, inside',
      'data: {"choices":[{"delta":{"content":"a","model":"inner"}}],"model":"theirs-2026"}\n\n',
      1,
    ],
    ['with another model inside', chunk('{"content":"a","model":"inner"}'), 1],
  ])('%s', (_what, event, words) => {
    expect(readOf(event)).toEqual({ model: 'theirs-2026', words })
  })

  test.each(wordKeys.map((key) => [key]))('with its text under %s', (key) => {
    expect(readOf(chunk(`{"${key}":"abcd"}`))).toEqual({ model: 'theirs-2026', words: 4 })
  })
})

describe('an event is not usual', () => {
  const plain = chunk('{"content":"a"}')
  test.each([
    ['without a text', chunk('{"role":"assistant","content":""}')],
    ['without a model', plain.replace('"model"', '"modell"')],
    ['with a model that is no string', plain.replace('"theirs-2026"', '5')],
    ['with a finish', chunk('{"content":"a"}', '', '"stop"')],
    ['with a usage', chunk('{"content":"a"}', ',"usage":{"prompt_tokens":1}')],
    ['with an error', chunk('{"content":"a"}', ',"error":{}')],
    ['with an error in words', chunk('{"content":"a"}', ',"error": "no"')],
    ['with calls', chunk('{"content":"a","tool_calls":[]}')],
    ['with an error behind a text', chunk('{"content":"a"}', ',"x":"error":{"message":"no"}')],
    ['that begins otherwise', plain.replace('data: ', 'dataX ')],
    ['that only looks as if it began so', plain.replace('data: ', 'd\n\nx: ')],
    ['with blanks before a colon', plain.replace('"content":', '"content" :')],
    ['with a colon behind a comma', plain.replace('"content":', '"model",:"b","content":')],
    ['with two blanks after one', plain.replace('"finish_reason":null', '"finish_reason":  null')],
    ['with a line end inside', plain.replace(',', ',\n')],
    ['with a line end in a text', plain.replace('"a"', '"a\n"')],
    ['with a carriage return', plain.replace('\n\n', '\r\n\r\n')],
    ['with one line end', plain.slice(0, -1)],
    ['with three', `${plain}\n`],
    ['and another after it', plain + plain],
    ['and half of another after it', `${plain}data: {`],
    ['but half of one', plain.slice(0, 50)],
    ['but the end of one', plain.slice(50)],
    ['with something after its object', plain.replace('\n\n', '{}\n\n')],
    ['with too few closed', plain.replace('}]}', '}]')],
    ['with a text that does not end', plain.replace('"a"', '"a')],
    ['with a backslash before its end', `${plain.slice(0, -3)}"\\}\n\n`],
    ['with letters after a key', plain.replace('"content"', '"content"b')],
    ['with a name', `event: x\n${plain}`],
    ['but the end', 'data: [DONE]\n\n'],
    ['but a comment', ': ping\n\n'],
    ['but an object without anything', 'data: {}\n\n'],
    ['but nothing', ''],
  ])('%s', (_what, event) => {
    expect(readOf(event)).toBeUndefined()
  })
})

const names = [...wordKeys, 'model', 'usage', 'error', 'finish_reason', 'tool_calls', 'id', 'name', 'x', 'errors', 'u']
const gap = fc.constantFrom('', '', '', '', '', ' ', '  ')
const words = fc.oneof(
  fc.string(),
  fc.constantFrom('', '"', '\\', 'model', '"error":{', 'content', 'tool_calls', '"usage":{}', '\n'),
)
const { member } = fc.letrec<{ value: string; member: string; members: string }>((tie) => ({
  members: fc.array(tie('member'), { maxLength: 4 }).map((all) => `{${all.join(',')}}`),
  member: fc
    .tuple(fc.constantFrom(...names), gap, gap, tie('value'), gap)
    .map(([name, before, after, value, last]) => `"${name}"${before}:${after}${value}${last}`),
  value: fc.oneof(
    { maxDepth: 3 },
    words.map((text) => JSON.stringify(text)),
    fc.constantFrom('null', 'null', 'null', '1', 'true', '[]', '[{}]'),
    tie('members'),
    tie('members').map((inner) => `[${inner}]`),
  ),
}))
const object = fc.array(member, { maxLength: 4 }).map((all) => `{"model":"theirs","content":"a",${all.join(',')}}`)
/** Some bytes of an event are cut out, and others put in their place. */
const damage = fc.tuple(fc.nat(200), fc.nat(3), fc.constantFrom('', '"', '\\', '{', '}', ':', ',', '\n', '[', ']'))

test('what passes as usual leaves the same bytes and facts as where it is searched in full', () => {
  let usual = 0
  fc.assert(
    fc.property(
      fc.array(object, { minLength: 1, maxLength: 4 }),
      fc.option(damage, { freq: 2 }),
      (objects, damaged) => {
        const quick = passStream({ ...plainAsk, model: 'ours' })
        const careful = passStream({ ...plainAsk, model: 'ours' })
        for (const json of objects) {
          const [at, length, put] = damaged ?? [0, 0, '']
          const event = Buffer.from(`data: ${json.slice(0, at) + put + json.slice(at + length)}\n\n`)
          const passed = quick.takeUsual?.(event)
          if (passed !== undefined) usual++
          const shown = passed ?? quick.take(event) ?? new Uint8Array()
          expect(Buffer.from(wholeOf(shown)).toString()).toBe(Buffer.from(careful.take(event) ?? []).toString())
          expect(quick.facts).toEqual(careful.facts)
          expect(quick.keepAlive?.()).toEqual(careful.keepAlive?.())
          if (careful.facts.failure !== undefined) return // a relay ends there
        }
      },
    ),
    { numRuns: 5_000 },
  )
  expect(usual).toBeGreaterThan(1_000)
})

test('an event of a stream of several choices is never usual', () => {
  const event = Buffer.from(chunk('{"content":"a"}'))
  expect(passStream({ ...plainAsk, choices: 2 }).takeUsual?.(event)).toBeUndefined()
  expect(passStream(plainAsk).takeUsual?.(event)).toBeDefined()
})
