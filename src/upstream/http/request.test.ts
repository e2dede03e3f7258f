import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { writeRequest } from './request.ts'
import { targetOf } from './target.ts'

const url = 'http://vendor.test/v1/chat'
const textOf = (max: number) =>
  fc.string({ unit: fc.integer({ min: 0, max }).map((code) => String.fromCharCode(code)) })
const values = textOf(0xff).map((text) => text.replaceAll(/[^\x20-\x7e\x80-\xff]/g, ''))
// Up to 0xffff, there are also halves of surrogate pairs, which become U+FFFD on the way.
const texts = fc.oneof(fc.string(), fc.string({ unit: 'grapheme' }), textOf(0xff), textOf(0xffff))
const bodies = fc.oneof(
  texts,
  texts.map((text) => text + 'x'.repeat(64 * 1024)),
)

test('a head is latin1 and a body UTF-8, in one piece, whatever is in them', () => {
  fc.assert(
    fc.property(values, bodies, (value, text) => {
      const pieces = writeRequest({ url, headers: { 'x-name': value }, body: text }, targetOf(url))
      expect(pieces).toHaveLength(1)
      const all = Buffer.from(pieces[0] ?? new Uint8Array())
      const body = Buffer.from(text)
      const end = all.indexOf('\r\n\r\n')
      expect(all.toString('latin1', 0, end).split('\r\n').slice(-2)).toEqual([
        `x-name: ${value}`,
        `content-length: ${body.length}`,
      ])
      expect(all.subarray(end + 4)).toEqual(body)
    }),
    { numRuns: 500 },
  )
})

test.each([
  ['x-name', 'a\r\nb: c'],
  ['x-name', '\u0100'],
  ['x-name: a\r\nb', 'c'],
])('a header that could begin another is refused: %j with %j', (name, value) => {
  const target = targetOf(url)
  expect(() => writeRequest({ url, headers: { [name]: value }, body: '' }, target)).toThrow('no header may have')
})
