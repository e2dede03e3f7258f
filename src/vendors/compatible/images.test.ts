import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import type { ImageLimits } from '../../capabilities/limits.ts'
import { vendors } from '../index.ts'
import { imagesAskOf, plainContext } from '../testing.ts'

const limits: ImageLimits = {
  sizes: ['512x512', '1024x1024'],
  sizeDefault: '1024x1024',
  qualities: [],
  countMax: 1,
  alwaysBytes: false,
  references: { min: 0, max: 3 },
}

/** What the vendor is sent for a client's body. */
function sent(
  vendor: string,
  body: JsonObject,
  sold: 'pieces' | 'tokens' = 'pieces',
  more: Partial<ImageLimits> = {},
): JsonObject {
  const step = vendors.get(vendor)?.images?.start(imagesAskOf(body, { ...limits, ...more }, sold), plainContext)
  const [call] = step?.kind === 'calls' ? step.calls : []
  if (call?.transport !== 'vendor' || typeof call.body !== 'string') throw new Error('nothing was sent')
  return JSON.parse(call.body)
}

test('a model that is sold by the size is told its size, because the default of the vendor may have another price', () => {
  const prompt = 'a cat'
  expect(sent('openai', { prompt })).toMatchObject({ size: '1024x1024', response_format: 'b64_json' })
  expect(sent('openai', { prompt }, 'tokens')).not.toHaveProperty('size')
  expect(sent('openai', { prompt, size: '512x512' }, 'tokens')).toMatchObject({ size: '512x512' })
})

test('reference images reach a vendor of the common protocol as the client gave them, one or a list', () => {
  const image = 'https://example.com/a.png'
  expect(sent('compatible', { prompt: 'a cat', image })).toMatchObject({ image })
  expect(sent('compatible', { prompt: 'a cat', image: [image, image] })).toMatchObject({ image: [image, image] })
})

test('of the native form only what the common protocol has is sent', () => {
  const input = { messages: [{ role: 'user', content: [{ text: 'a cat' }] }] }
  const parameters = { size: '1328*1328', watermark: true, negative_prompt: 'dogs' }
  expect(sent('compatible', { input, parameters })).toEqual({
    model: 'theirs',
    prompt: 'a cat\n\nAvoid: dogs',
    size: '1024x1024',
    response_format: 'b64_json',
  })
})

test('xAI is told no size, quality or style, for which it would refuse to draw', () => {
  const asked = { prompt: 'a cat', size: '512x512', quality: 'auto', style: 'vivid', n: 1 }
  expect(sent('xai', asked)).toEqual({ model: 'theirs', prompt: 'a cat', n: 1, response_format: 'b64_json' })
  const input = { messages: [{ role: 'user', content: [{ text: 'a cat' }] }] }
  expect(sent('xai', { input })).toEqual({ model: 'theirs', prompt: 'a cat', response_format: 'b64_json' })
})

test.each([
  ['openai', true, false],
  ['openai', false, true],
  ['compatible', true, true],
])('whether a style is sent to %s for a model that always gives bytes (%j): %j', (vendor, alwaysBytes, isSent) => {
  const body = sent(vendor, { prompt: 'a cat', style: 'vivid' }, 'tokens', { alwaysBytes })
  expect(body['style'] === 'vivid').toBe(isSent)
})
