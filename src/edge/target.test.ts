import { describe, expect, test } from 'bun:test'
import { pathOf } from './target.ts'

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
