import { expect, test } from 'bun:test'
import type { ImageAskBase, ImagesAnswer } from '../../capabilities/images.ts'
import { writeAnswer, writeEvents } from './images-answer.ts'

const made = (base64: string) => ({ media: { kind: 'bytes' as const, mediaType: 'image/png', base64 } })
const tokens = { input: 3, cachedInput: 2, imageInput: 7, output: 11, imageOutput: 100 }
const answer: ImagesAnswer = { images: [made('AAAA'), made('BBBB')], width: 1024, height: 1536, tokens }
const usage = {
  input_tokens: 12,
  input_tokens_details: { text_tokens: 5, image_tokens: 7 },
  output_tokens: 111,
  total_tokens: 123,
  image_count: 2,
  width: 1024,
  height: 1536,
}

test('an answer states its tokens by kind, and how many images there are and how large', () => {
  const written = JSON.parse(Buffer.from(writeAnswer(answer, 7_000)).toString())
  expect(written).toEqual({ created: 7, data: [{ b64_json: 'AAAA' }, { b64_json: 'BBBB' }], usage })
})

test.each([
  ['images', 'image_generation.completed'],
  ['edits', 'image_edit.completed'],
] as const)('of several streamed %s only the last states the usage', (capability, type) => {
  const text = Buffer.from(writeEvents({ capability } as ImageAskBase, answer, 7_000)).toString()
  const events = [...text.matchAll(/^event: (.*)\ndata: (.*)\n\n/gm)].map(([, named, data = '']) => {
    return { named, ...JSON.parse(data) }
  })
  const about = { named: type, type, created_at: 7, size: '1024x1536' }
  expect(events).toEqual([
    { ...about, b64_json: 'AAAA', usage: expect.objectContaining({ total_tokens: 0, image_count: 0 }) },
    { ...about, b64_json: 'BBBB', usage },
  ])
})
