import { describe, expect, test } from 'bun:test'
import { pathOf, queryOf } from './target.ts'

const at = (url: string, host: string | undefined) =>
  pathOf(new Request(url, host === undefined ? {} : { headers: { host } }))

describe('the path of a request', () => {
  test.each([
    ['http://x/v1/models', '/v1/models'],
    ['http://x/v1/models?a=/b', '/v1/models'],
    ['http://x/', '/'],
    ['http://x:8080/a/b/', '/a/b/'],
  ])('the path is read from %s', (url, path) => {
    expect(at(url, 'x')).toBe(path)
  })
})

test.each([
  ['http://x/a', []],
  ['http://x/a?', []],
  [
    'http://x/a?b=%20c&d=e?f&b=',
    [
      ['b', ' c'],
      ['d', 'e?f'],
      ['b', ''],
    ],
  ],
  // Like hosts, but no URL can have them.
  ['http://256.256.256.256/a?b=c', [['b', 'c']]],
  ['http://x:99999/a?b=c', [['b', 'c']]],
])('the query is read from %s', (url, query) => {
  expect([...queryOf({ url } as Request)]).toEqual(query as [string, string][])
})

describe('the Host header', () => {
  test.each(['x', 'localhost:8080', 'a.b-c.example.', '127.0.0.1:1', '[::1]:8080', 'EXAMPLE.org'])(
    '%s is accepted',
    (host) => {
      expect(at('http://x/a', host)).toBe('/a')
    },
  )

  test.each([undefined, '', 'a b', 'a/b', 'a#b', 'a?b', 'a@b', 'a:b', 'a:123456', '-a', 'a, b', '[::1', 'a\\b'])(
    '%j is refused',
    (host) => {
      expect(() => at('http://x/a', host)).toThrow('Host')
    },
  )
})
