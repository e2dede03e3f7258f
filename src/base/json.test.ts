import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { GatewayError } from './errors.ts'
import { asDouble, canonical, isObject, mayKeepNumbers, parseBody } from './json.ts'

const limits = { depthMax: 10, keysMax: 20 }
const wide = { depthMax: 1_000, keysMax: 100_000 }

function codeOf(text: string, of = limits): string | undefined {
  try {
    parseBody(text, of)
    return undefined
  } catch (thrown) {
    expect(thrown).toBeInstanceOf(GatewayError)
    return (thrown as GatewayError).details.code
  }
}

const keys = (count: number) => `{${Array.from({ length: count }, (_, index) => `"k${index}":0`).join(',')}}`

const spaced = (text: string) => text.replace(/[[\]{}:,]/g, ' \n\t\r  $& \n\t ')

const zeros = (count: number, last = '0') => `[${'0,'.repeat(count - 1)}${last}]`

describe('limits on a body', () => {
  test('a body that nests deeper than the limit is refused', () => {
    expect(codeOf('['.repeat(10) + ']'.repeat(10))).toBeUndefined()
    expect(codeOf('['.repeat(11) + ']'.repeat(11))).toBe('body_too_deep')
    expect(codeOf('{"a":'.repeat(11) + '1' + '}'.repeat(11))).toBe('body_too_deep')
    expect(codeOf('['.repeat(1_000_000))).toBe('body_too_deep')
    expect(codeOf(']'.repeat(1_000_000) + '['.repeat(1_000_000))).toBe('invalid_json')
  })

  test('runs of spaces hide nothing behind them', () => {
    expect(codeOf(spaced(keys(20)))).toBeUndefined()
    expect(codeOf(spaced(keys(21)))).toBe('too_many_keys')
    expect(codeOf(spaced('['.repeat(11)))).toBe('body_too_deep')
    expect(codeOf(spaced(`{"__proto__":0}`))).toBe('invalid_value')
    expect(codeOf('[1,  !!  "a"]')).toBe('invalid_json')
    expect(codeOf('   ')).toBe('invalid_json')
  })

  test('a body with more keys than the limit is refused', () => {
    expect(codeOf(keys(20))).toBeUndefined()
    expect(codeOf(keys(21))).toBe('too_many_keys')
    expect(codeOf(`{"a":${keys(10)},"b":${keys(10)}}`)).toBe('too_many_keys')
  })

  test('a body with more list items than the limit is refused, not counting members of objects', () => {
    expect(codeOf(zeros(21))).toBeUndefined()
    expect(codeOf(zeros(22))).toBe('too_many_items')
    expect(codeOf(`[${zeros(10)},${zeros(12)}]`)).toBe('too_many_items')
    expect(codeOf(`{"a":${zeros(11)},"b":[{"c":${zeros(11)}}]}`)).toBeUndefined()
    expect(codeOf(keys(20))).toBeUndefined()
    expect(codeOf('[,,,,,,,,,,,,,,,,,,,,,,,')).toBe('too_many_items')
  })

  test('itemsMax allows more list items, except beside a number that keeps its text', () => {
    const more = { ...limits, itemsMax: 100 }
    expect(codeOf(zeros(50), more)).toBeUndefined()
    expect(codeOf(zeros(50, '"12345678901234567890"'), more)).toBeUndefined()
    expect(codeOf(zeros(50, '12345678901234567890'), more)).toBe('too_many_items')
    expect(codeOf(`[1e400,${'0,'.repeat(50)}0]`, more)).toBe('too_many_items')
    expect(codeOf(zeros(102), more)).toBe('too_many_items')
  })

  test('a number of more than 10,000 digits is refused', () => {
    expect(codeOf('1'.repeat(10_000))).toBeUndefined()
    expect(codeOf('1'.repeat(10_001))).toBe('number_too_long')
    expect(codeOf(`{"a":"${'1'.repeat(20_000)}"}`)).toBeUndefined()
  })

  test('brackets and colons inside strings do not count', () => {
    expect(codeOf(JSON.stringify({ a: '['.repeat(50) + ':'.repeat(50) }))).toBeUndefined()
    expect(codeOf(String.raw`{"a":"\"[[[[[[[[[[[[[[[\\","b":"\\\"{{{{{{{{{{{{"}`)).toBeUndefined()
    expect(codeOf(String.raw`{"a":"\\","b":[[[[[[[[[[[[1]]]]]]]]]]]]}`)).toBe('body_too_deep')
  })

  test('an unterminated string is refused as invalid JSON', () => {
    expect(codeOf('{"a":"')).toBe('invalid_json')
    expect(codeOf('"\\')).toBe('invalid_json')
    expect(codeOf(`"${'\\'.repeat(10_001)}`)).toBe('invalid_json')
  })
})

test.each(['', ' \n'])('an empty body (%j) is refused as one that is missing', (text) => {
  expect(() => parseBody(text, limits)).toThrow('The request has no body: send one in JSON.')
  expect(codeOf(text)).toBe('invalid_json')
})

describe('a __proto__ key', () => {
  test.each([
    '{"__proto__":1}',
    '{"a":{"__proto__":{}}}',
    '[[{"__proto__":null}]]',
    String.raw`{"\u005f\u005fproto\u005f\u005f":1}`,
    String.raw`{"__pro\u0074o__":1}`,
    '{"a":1,  "__proto__"  : 2}',
    String.raw`{"a\"b":{"\u005F\u005F\u0070\u0072\u006F\u0074\u006F\u005F\u005F" :1}}`,
  ])('the body is refused: %s', (text) => {
    expect(codeOf(text)).toBe('invalid_value')
    expect(({} as Record<string, unknown>)['isAdmin']).toBeUndefined()
  })

  test('the body is refused whichever of its characters are escapes', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { minLength: 9, maxLength: 9 }), (isEscape) => {
        const key = Array.from('__proto__', (character, index) => {
          return isEscape[index] === true ? `\\u00${character.charCodeAt(0).toString(16)}` : character
        })
        expect(codeOf(`{"${key.join('')}":1}`)).toBe('invalid_value')
      }),
    )
  })

  test('__proto__ as a value or as part of a longer key is plain text', () => {
    expect(parseBody('{"a":"__proto__","__proto__x":1}', limits)).toEqual({ a: '__proto__', __proto__x: 1 })
    expect(parseBody(String.raw`{"\\u005f_proto__":1}`, limits)).toEqual({ [String.raw`\u005f_proto__`]: 1 })
    expect(parseBody(String.raw`["__proto__","\"__proto__"]`, limits)).toEqual(['__proto__', '"__proto__'])
  })
})

const written = (text: string) => JSON.stringify(parseBody(text, wide))

describe('numbers', () => {
  test.each([
    '9007199254740993',
    '-9007199254740993',
    `1${'2'.repeat(399)}`,
    '1e400',
    '-1e400',
    '1E+309',
    '1e-400',
    '0.1000000000000000055511151231257827021181583404541015625',
    '12345678901234567890.5',
  ])('%s keeps its own text', (number) => {
    expect(written(number)).toBe(number)
    expect(written(`{"a":[${number},{"b":${number}}]}`)).toBe(`{"a":[${number},{"b":${number}}]}`)
  })

  test('numbers that fit a double stay numbers', () => {
    expect(parseBody('[9007199254740991,0.1,1e21,-0.5,123456789012345]', wide)).toEqual([
      9_007_199_254_740_991, 0.1, 1e21, -0.5, 123_456_789_012_345,
    ])
  })

  test('numbers beside a string of many digits stay numbers', () => {
    expect(parseBody('{"a":"12345678901234567890","b":2}', wide)).toEqual({ a: '12345678901234567890', b: 2 })
  })

  test('a number that kept its text can be read as the nearest double', () => {
    expect(asDouble(parseBody('0.70000000000000000000001', wide))).toBe(0.7)
    expect(asDouble(parseBody('1e400', wide))).toBe(Infinity)
    expect(asDouble('0.5')).toBe('0.5')
    expect(asDouble(undefined)).toBeUndefined()
  })
})

test('the last value of a duplicate key counts, and is written once', () => {
  expect(JSON.stringify(parseBody('{"n":1,"n":2}', limits))).toBe('{"n":2}')
  expect(JSON.stringify(parseBody('{"n":1,"n":12345678901234567890}', limits))).toBe('{"n":12345678901234567890}')
})

test('any valid JSON is read as JSON.parse reads it', () => {
  fc.assert(
    fc.property(fc.json({ noUnicodeString: false }), (text) => {
      fc.pre(!text.includes('__proto__'))
      expect(JSON.stringify(parseBody(text, wide))).toBe(JSON.stringify(JSON.parse(text)))
    }),
  )
})

test('any text is either parsed or refused with one of our error codes', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('{', '}', '[', ']', '"', '\\', ':', ',', '1', 'e', 'a') }),
      (text) => {
        const code = codeOf(text, wide)
        expect([undefined, 'invalid_json', 'body_too_deep', 'too_many_keys']).toContain(code)
      },
    ),
  )
})

test('isObject accepts objects, and neither arrays nor null nor primitives', () => {
  expect([{}, { a: 1 }].every(isObject)).toBe(true)
  expect([null, [], 'a', 1, undefined].some(isObject)).toBe(false)
})

const said = (text: string) => canonical(parseBody(text, limits))

describe('the canonical text of a body', () => {
  test.each([
    ['{"b":1,"a":[{"d":null,"c":"x"}]}', ' { "a" : [ { "c" : "\\u0078", "d" : null } ], "b" : 1.0 } '],
    ['{"2":0,"1":0,"b":0,"a":0}', '{"a":0,"1":0,"b":0,"2":0}'],
    ['{"b":12345678901234567890,"a":0}', '{"a":0,"b":12345678901234567890}'],
  ])('%s has the same text as %s', (one, other) => {
    expect(said(one)).toBe(said(other))
  })

  test.each([
    ['{"a":[1,2]}', '{"a":[2,1]}'],
    ['{"a":1}', '{"a":"1"}'],
    ['{"a":null}', '{}'],
    ['{"a":12345678901234567890}', '{"a":12345678901234567891}'],
  ])('%s has another text than %s', (one, other) => {
    expect(said(one)).not.toBe(said(other))
  })
})

describe('half of a surrogate pair', () => {
  const body = String.raw`{"\ud800k":["a\uD83D","\ude00b",{"whole":"\ud83d\uDE00","said":"\\ud83d","n":12345678901234567890}]}`

  test('it becomes U+FFFD in texts and names if that is wanted, and all else stays', () => {
    const parsed = parseBody(body, { ...limits, replacesHalves: true })
    const item = '{"whole":"😀","said":"\\\\ud83d","n":12345678901234567890}'
    expect(JSON.stringify(parsed)).toBe(`{"\ufffdk":["a\ufffd","\ufffdb",${item}]}`)
    expect(mayKeepNumbers(parsed)).toBe(true)
  })

  test('it stays otherwise', () => {
    expect(parseBody(String.raw`["a\ud83d"]`, limits)).toEqual(['a\ud83d'])
  })
})
