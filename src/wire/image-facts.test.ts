import { expect, test } from 'bun:test'
import { errorOf } from '../../test/support/thrown.ts'
import type { JsonObject } from '../base/json.ts'
import type { ModelTraits } from '../capabilities/limits.ts'
import { plainModel } from '../capabilities/testing.ts'
import { imagesCodec } from './images.ts'

/** A model with a price for small images of low quality alone. */
const traits: ModelTraits = {
  ...plainModel,
  images: {
    sizes: ['1024x1024', '2048x2048'],
    qualities: ['low', 'high'],
    countMax: 1,
    alwaysBytes: false,
    references: { min: 0, max: 1 },
  },
  sells: () => false,
  sellsImage: (size, quality) => size === '1024x1024' && quality === 'low',
  sellsVideo: () => false,
}

function read(fields: JsonObject, more: Partial<ModelTraits> = {}) {
  const asked = { body: { model: 'm', ...fields }, files: [], bodyBytes: 100, header: () => null }
  return imagesCodec.readAsk(asked, () => ({ ...traits, ...more }))
}

const prompt = 'A cat'

test('a size or a quality without a price is refused where images are sold by the piece', () => {
  const sold = { prompt, size: '1024x1024', quality: 'low' }
  const input = { messages: [{ role: 'user', content: [{ text: prompt }] }] }
  expect(read(sold)).toMatchObject({ size: '1024x1024', quality: 'low', sold: 'pieces' })
  for (const body of [{ ...sold, size: '2048x2048' }, { ...sold, quality: 'high' }, { input }]) {
    expect(errorOf(() => read(body)).details).toEqual({ param: 'size', code: 'unsupported_value' })
    expect(read(body, { sells: (unit) => unit === 'imageOutput' })).toMatchObject({ sold: 'tokens' })
  }
})

test('only prompts that are sold by the token count towards a limit of tokens', () => {
  const ask = read({ prompt, size: '1024x1024', quality: 'low' })
  expect(imagesCodec.estimateInput(ask)).toBe(0)
  expect(imagesCodec.estimateInput({ ...ask, sold: 'tokens' })).toBe(ask.textTokens)
  expect(ask.textTokens).toBeGreaterThan(0)
})
