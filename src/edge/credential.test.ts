import { expect, test } from 'bun:test'
import { bearerOf, bearerOrApiKeyOf } from './credential.ts'

test.each([
  ['Bearer sk-abc', 'sk-abc'],
  ['bearer sk-abc', 'sk-abc'],
  ['BEARER sk-abc', 'sk-abc'],
  ['Bearer', undefined],
  ['Bearer  sk-abc', undefined],
  ['Bearer sk-abc x', undefined],
  ['Bearer sk-a,Bearer sk-b', undefined],
  ['Basic sk-abc', undefined],
  ['sk-abc', undefined],
  ['XBearer sk-abc', undefined],
])('only a well-formed Authorization header gives a key: %j', (header, key) => {
  expect(bearerOf(new Request('http://x', { headers: { authorization: header } }))).toBe(key)
})

test('a request without an Authorization header has no key', () => {
  expect(bearerOf(new Request('http://x'))).toBeUndefined()
})

test.each([
  [{ 'x-api-key': 'sk-abc' }, 'sk-abc'],
  [{ 'x-api-key': 'sk-abc', authorization: 'Bearer sk-def' }, 'sk-def'],
  [{ 'x-api-key': 'sk-abc', authorization: 'nonsense' }, undefined],
  [{ 'x-api-key': 'sk-a, sk-b' }, undefined],
  [{ 'x-api-key': '' }, undefined],
])('the key is read from either header, Authorization first: %j', (headers, key) => {
  expect(bearerOrApiKeyOf(new Request('http://x', { headers }))).toBe(key)
})
