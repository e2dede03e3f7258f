import { expect, test } from 'bun:test'
import type { JsonObject } from '../base/json.ts'
import { drawImage } from '../sandbox/files/image.ts'
import { vendors } from './index.ts'
import { answer, imagesAskOf, plainContext } from './testing.ts'

const limits = { sizes: [], qualities: [], countMax: 4, alwaysBytes: false, references: { min: 0, max: 0 } }

function start(vendor: string, upstreamModel: string, more: JsonObject = {}) {
  const ask = imagesAskOf({ prompt: 'a cat', ...more }, limits, 'pieces')
  const step = vendors.get(vendor)?.images?.start(ask, { ...plainContext, upstreamModel })
  if (step?.kind !== 'calls') throw new Error('nothing was asked')
  return step
}

test.each([
  ['dashscope', 'qwen-image-2.0', { output: {}, usage: { image_count: 1 } }],
  ['ark', 'seedream', { created: 1 }],
  ['google', 'gemini-3-pro-image', { modelVersion: 'gemini-3-pro-image' }],
])('%s: an answer without a list of results is a failure of the vendor, not a refusal', (vendor, model, body) => {
  expect(() => start(vendor, model).next([answer(body)])).toThrow('no answer that can be')
})

test.each([503, undefined])('Google: an error under a 200 is no filtered image: %p', (code) => {
  const step = start('google', 'imagen-4.0-generate-001')
  expect(step.statusOf?.(answer({ error: { code, message: 'x' } }))).toBe(code ?? 500)
})

test.each(['url', 'b64_json'])('links beyond the number that was asked for are left out: %s', (response_format) => {
  const content = Array.from({ length: 10_000 }, (_, at) => ({ image: `https://oss.example/${at}.png` }))
  const made = { output: { choices: [{ message: { content } }] }, usage: { image_count: 2 } }
  const step = start('dashscope', 'qwen-image-2.0', { n: 2, response_format }).next([answer(made)])
  const links = content.slice(0, 2).map(({ image }) => image)
  const found =
    step.kind === 'calls'
      ? step.calls.map(({ url }) => url)
      : step.kind === 'answered' && step.answer.images.map(({ media }) => media.kind === 'url' && media.url)
  expect(found).toEqual(links)
})

const inContent = (urls: readonly string[], usage: JsonObject) => {
  return { output: { choices: [{ message: { content: urls.map((image) => ({ image })) } }] }, usage }
}
const inData = (urls: readonly string[], usage: JsonObject) => ({ data: urls.map((url) => ({ url })), usage })

test.each([
  ['dashscope', 'qwen-image-2.0', inContent, {}, {}],
  ['dashscope', 'qwen-image-2.0', inContent, { image_count: 4 }, { vendorUsage: { images: { count: 4 } } }],
  ['ark', 'seedream', inData, {}, {}],
  ['openai', 'dall-e-2', inData, {}, {}],
])('%s: images that are left out are not charged', (vendor, model, write, usage, ourCost) => {
  const urls = Array.from({ length: 4 }, (_, at) => `https://oss.example/${at}.png`)
  const counted = start(vendor, model, { n: 2 }).count?.(answer(write(urls, usage)), 0)
  expect(counted).toEqual({ usage: { images: { count: 2 } }, basis: 'vendor', ...ourCost })
})

const png = Buffer.from(drawImage({ width: 2, height: 2, format: 'png', seed: 1 })).toString('base64')
const four = <T>(one: T): readonly T[] => [one, one, one, one]

test.each([
  ['openai', 'dall-e-2', { data: four({ b64_json: png }) }],
  ['ark', 'seedream', { data: four({ b64_json: png }) }],
  ['google', 'imagen-4.0-generate-001', { predictions: four({ bytesBase64Encoded: png, mimeType: 'image/png' }) }],
  [
    'google',
    'gemini-3-pro-image',
    { candidates: [{ content: { parts: four({ inlineData: { data: png, mimeType: 'image/png' } }) } }] },
  ],
])('%s: bytes beyond the number that was asked for are left out like links: %s', (vendor, model, body) => {
  const asked = start(vendor, model, { n: 2 })
  const step = asked.next([answer(body)])
  if (step.kind !== 'answered') throw new Error('nothing was answered')
  expect(step.answer.images).toHaveLength(2)
  expect(step.answer.passed).toBeUndefined()
  expect(asked.count?.(answer(body), 0)).toEqual({ usage: { images: { count: 2 } }, basis: 'vendor' })
})
