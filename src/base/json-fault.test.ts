import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { whyNotJson } from './json-fault.ts'

test.each([
  // Cut off.
  ['{"model":"m","messages":[', 'it ends at line 1, column 26, where a value or `]` is expected'],
  ['{"model":"m"', 'it ends at line 1, column 13, where a comma or `}` is expected'],
  ['{"model":"m","messages', 'line 1, column 14 begins a text that has no closing quote'],
  ['{"model":"m\\', 'line 1, column 10 begins a text that has no closing quote'],
  ['{"model":"m\\u00e', 'line 1, column 10 begins a text that has no closing quote'],
  // A comma too many or too few.
  [
    '{"n":1,}',
    'line 1, column 8 has `}` where another name in double quotes is expected; JSON has no comma after the last one',
  ],
  ['[1,]', 'line 1, column 4 has `]` where another value is expected; JSON has no comma after the last one'],
  ['{"n":[1,}', 'line 1, column 9 has `}` where another value is expected; JSON has no comma after the last one'],
  ['[1,,2]', 'line 1, column 4 has `,` where another value is expected'],
  ['{"n":}', 'line 1, column 6 has `}` where a value is expected'],
  ['{"n":1 "m":2}', 'line 1, column 8 has `"` where a comma or `}` is expected'],
  ['{"n" 1}', 'line 1, column 6 has `1` where a colon is expected'],
  // What other languages allow.
  [
    "{'n':1}",
    "line 1, column 2 has `'` where a name in double quotes or `}` is expected; names and texts are in straight double quotes",
  ],
  [
    '{“n”:1}',
    'line 1, column 2 has U+201C where a name in double quotes or `}` is expected; names and texts are in straight double quotes',
  ],
  ['{n:1}', 'line 1, column 2 has `n` where a name in double quotes or `}` is expected'],
  [
    '{"n":NaN}',
    'line 1, column 6 has `N` where a value is expected; the only words without quotes are true, false and null',
  ],
  ['{} // none', 'line 1, column 4 has `/` where nothing more is expected; JSON has no comments'],
  ['{"n":01}', 'line 1, column 7 has `1` where a comma or `}` is expected'],
  ['{"n":.5}', 'line 1, column 6 has `.` where a value is expected'],
  ['{"n":-Infinity}', 'line 1, column 6 has `-` where a value is expected'],
  // Inside a text.
  ['{"n":"a\nb"}', 'line 1, column 8 has U+000A inside a text: write it as \\n'],
  ['{"n":"a\u001bb"}', 'line 1, column 8 has U+001B inside a text: write it as \\u001b'],
  ['{"n":"C:\\Users"}', 'line 1, column 9 has a backslash that begins no escape: write it as \\\\'],
  ['{"n":"\\u00e"}', 'line 1, column 7 has a backslash that begins no escape: write it as \\\\'],
  // Too much.
  ['{}{}', 'line 1, column 3 has `{` where nothing more is expected'],
  ['{"n":[1}', 'line 1, column 8 has `}` where a comma or `]` is expected'],
  ['\ufeff{}', 'line 1, column 1 has U+FEFF where a value is expected; send the body without a byte order mark'],
  // Lines and columns.
  ['{\r\n\t"n": "😀", "m"\n}', 'line 3, column 1 has `}` where a colon is expected'],
  ['{"n": "😀" 1}', 'line 1, column 11 has `1` where a comma or `}` is expected'],
  ['[😀]', 'line 1, column 2 has U+1F600 where a value or `]` is expected'],
])('%j is no JSON, because %s', (text, why) => {
  expect(whyNotJson(text)).toBe(why)
})

const signs = ['{', '}', '[', ']', '"', '\\', ':', ',', '1', '0', '-', '.', 'e', 'E', '+', 'u', 'U', 'a', ' ', '\n']
const anyText = fc.oneof(
  fc.string({ unit: fc.constantFrom(...signs, 'null', 'true', '\u2028', '\u007f'), maxLength: 12 }),
  // Nearly JSON: with one character left out or put in.
  fc
    .tuple(fc.json(), fc.nat(), fc.nat({ max: 1 }), fc.constantFrom('', ...signs))
    .map(([text, place, without, sign]) => {
      const at = place % (text.length + 1)
      return text.slice(0, at) + sign + text.slice(at + without)
    }),
)

test('a fault is found in exactly those texts that the parser refuses', () => {
  fc.assert(
    fc.property(anyText, (text) => {
      const isJson = (() => {
        try {
          return JSON.parse(text) !== undefined
        } catch {
          return false
        }
      })()
      expect(whyNotJson(text) === undefined).toBe(isJson)
    }),
    { numRuns: 2_000 },
  )
})

test('behind a million characters, lines are not counted', () => {
  const lines = '\n'.repeat(1_000_000)
  expect(whyNotJson(`${lines}x`)).toStartWith('line 1000001, column 1 has `x` where')
  expect(whyNotJson(`${lines} x`)).toStartWith('character 1000002 has `x` where')
})

test('of a body, no more than one character is shown, and no control character', () => {
  const secret = 'sk-canary'
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      const why = whyNotJson(secret + text) ?? ''
      expect(why).toMatch(/^line 1, column 1 has `s` where/)
      expect(whyNotJson(`["${secret}",${text}\u0000`)).toMatch(/^[\x20-\x7e]+$/)
      expect(whyNotJson(`["${secret}",${text}\u0000`)).not.toContain('canary')
    }),
  )
})
