import { expect, test } from 'bun:test'
import type { JsonObject } from '../base/json.ts'
import { checkSpellingInside } from './check-spelling.ts'

const check = checkSpellingInside(['role', 'url'], ['messages', 'content', 'image'])

test.each<[name: string, body: JsonObject, place: string, meant: string]>([
  [
    'in an object of a list',
    { messages: [{ role: 'a' }, 'text', { Role: 'a' }] },
    'messages[2].Role',
    'messages[2].role',
  ],
  [
    'in a list of lists',
    { messages: [{ content: [{}, { URL: 'x' }] }] },
    'messages[0].content[1].URL',
    'messages[0].content[1].url',
  ],
  ['below a field that is no list', { image: { image: { Url: 'x' } } }, 'image.image.Url', 'image.image.url'],
  ['before one that is deeper', { image: { image: { Url: 'x' }, Role: 'a' } }, 'image.Role', 'image.role'],
  [
    'before one in a later object',
    { messages: [{ content: [{ ROLE: 'a' }] }, { Role: 'a' }] },
    'messages[0].content[0].ROLE',
    'messages[0].content[0].role',
  ],
])('a second spelling is refused with its place: %s', (_, body, place, meant) => {
  expect(() => check(body)).toThrow(`Unknown parameter: '${place}'. Did you mean '${meant}'?`)
})

test('a field that extra_body would lay over one of these is refused with its place', () => {
  const body = { messages: [{ content: [{ extra_body: { any: 1, url: 'x' } }] }] }
  expect(() => check(body)).toThrow(
    "'messages[0].content[0].extra_body.url' is not supported: write 'messages[0].content[0].url' itself.",
  )
})

test.each<[string, JsonObject]>([
  ['known names', { messages: [{ role: 'a', content: [{ url: 'x' }] }] }],
  ['names of the client’s own', { messages: [{ mine: { Role: 'a' } }] }],
  ['texts and nulls in place of objects', { messages: 'x', content: null, image: [null, 1, 'Role'] }],
])('%s pass', (_, body) => {
  expect(() => check(body)).not.toThrow()
})
