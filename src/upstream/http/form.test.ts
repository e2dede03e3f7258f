import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Form } from '../../vendors/vendor.ts'
import { writeForm } from './form.ts'

function written(form: Form): string {
  const { contentType, pieces, length } = writeForm(form)
  const bytes = Buffer.concat(pieces)
  expect(length).toBe(bytes.length)
  return withoutBoundary(bytes, contentType)
}

/** The runtime's own writer. */
async function expected(form: Form): Promise<string> {
  const made = new FormData()
  for (const { field, value } of form) {
    if (typeof value === 'string') made.append(field, value)
    else made.append(field, new File([new Uint8Array(value.bytes)], value.name, { type: value.mediaType }))
  }
  const response = new Response(made)
  const contentType = response.headers.get('content-type') ?? ''
  return withoutBoundary(Buffer.from(await response.arrayBuffer()), contentType)
}

function withoutBoundary(bytes: Buffer, contentType: string): string {
  const boundary = /^multipart\/form-data; boundary=([\w-]+)$/.exec(contentType)?.[1] ?? ''
  expect(boundary).not.toBe('')
  return bytes.toString('latin1').replaceAll(boundary, 'boundary')
}

const file = (name: string, bytes: Uint8Array) => ({ name, mediaType: 'image/png', bytes })
const odd = 'a "quoted" ☃\r\nand\nthree\rlines \ud800'

test.each<[string, Form]>([
  ['a field', [{ field: 'prompt', value: 'A house.' }]],
  ['an empty field', [{ field: 'prompt', value: '' }]],
  ['a field of many lines', [{ field: 'prompt', value: odd }]],
  ['a field whose name would begin a header', [{ field: `${odd}"\r\nX: y\r\n\r\n`, value: 'z' }]],
  ['a file', [{ field: 'image', value: file('image-1.png', new Uint8Array([1, 13, 10, 255])) }]],
  ['an empty file', [{ field: 'image', value: file('image-1.png', new Uint8Array()) }]],
  ['a file whose name would begin a header', [{ field: 'image', value: file('a"\r\nX: y', new Uint8Array(3)) }]],
  [
    'a field between two files',
    [
      { field: 'image[]', value: file('image-1.png', new Uint8Array(3)) },
      { field: 'n', value: '2' },
      { field: 'image[]', value: file('image-2.png', new Uint8Array(4)) },
    ],
  ],
])('%s is written as the runtime writes it', async (_, form) => {
  expect(written(form)).toBe(await expected(form))
})

test('any form is written as the runtime writes it', async () => {
  const text = fc.string({ unit: fc.constantFrom('\r', '\n', '"', '%', 'a', ';', '-', '☃', '\ud800') })
  const value = fc.oneof(
    text,
    fc.uint8Array({ maxLength: 50 }).map((bytes) => file('image-1.png', bytes)),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(fc.record({ field: text, value }), { minLength: 1, maxLength: 5 }), async (form) => {
      expect(written(form)).toBe(await expected(form))
    }),
  )
})

test('each form has a boundary of its own, and its files are not copied', () => {
  const bytes = new Uint8Array(100)
  const form = [{ field: 'image', value: file('image-1.png', bytes) }]
  expect(writeForm(form).contentType).not.toBe(writeForm(form).contentType)
  expect(writeForm(form).pieces).toContain(bytes)
})
