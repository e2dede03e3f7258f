import { expect, test } from 'bun:test'
import { typeToSend } from './media-type.ts'

const sent = (mediaType: string, base64: string) => typeToSend({ kind: 'bytes', mediaType, base64 })

test.each([
  ['image/png', 'iVBORw0KGgoAAAANSUhEUg=='],
  ['image/jpeg', '/9j/4AAQSkZJRgABAQAAAQ=='],
  ['image/gif', 'R0lGODlhAQABAIAAAAAAAA=='],
  ['image/webp', 'UklGRiQAAABXRUJQVlA4IBg='],
])('an image that begins as %s is sent as one, whatever its label says', (type, base64) => {
  for (const label of ['image/png', 'image/jpeg', 'image/jpg']) expect(sent(label, base64)).toBe(type)
})

test('what the bytes do not say is taken from the label, spelt as it is registered', () => {
  expect(sent('image/jpg', 'SGk=')).toBe('image/jpeg')
  expect(sent('image/webp', 'UklGRiQAAABXQVZFZm10IBA=')).toBe('image/webp')
  expect(sent('image/heic', '')).toBe('image/heic')
})

test('the label of other files is kept', () => {
  expect(sent('application/pdf', 'iVBORw0KGgoAAAANSUhEUg==')).toBe('application/pdf')
})
