import { expect, test } from 'bun:test'
import type { ImagesAsk } from '../../capabilities/images.ts'
import { answer, plainContext } from '../testing.ts'
import { google } from './google.ts'

/** What a Gemini model is told of the size that a client asks for. */
function configOf(upstreamModel: string, size: string): unknown {
  const ask = { capability: 'images', prompt: 'a cat', size, count: 1, references: [] }
  // The only fields that the adapter reads.
  const step = google.images?.start(ask as unknown as ImagesAsk, { ...plainContext, upstreamModel })
  const [call] = step?.kind === 'calls' ? step.calls : []
  if (call?.transport !== 'vendor' || typeof call.body !== 'string') throw new Error('nothing is sent')
  return JSON.parse(call.body).generationConfig.imageConfig
}

test.each([
  ['gemini-3-pro-image', '1024x1024', { aspectRatio: '1:1' }],
  ['gemini-3-pro-image', '1536x1024', { aspectRatio: '3:2' }],
  ['gemini-3-pro-image', '2048x2048', { aspectRatio: '1:1', imageSize: '2K' }],
  ['gemini-3-pro-image', '1152x2048', { aspectRatio: '9:16', imageSize: '2K' }],
  ['gemini-3-pro-image', '4096x4096', { aspectRatio: '1:1', imageSize: '4K' }],
  ['gemini-nano-banana-2.1', '4096x4096', { aspectRatio: '1:1', imageSize: '4K' }],
  // Its vendor refuses the field on models of the second generation, which make one size only.
  ['gemini-2.5-flash-image', '4096x4096', { aspectRatio: '1:1' }],
])('%s is asked for %s by its ratio and its nearest size', (model, size, config) => {
  expect(configOf(model, size)).toEqual(config)
})

test('the reason for which Imagen held an image back is passed on, and nothing is charged', () => {
  const ask = { capability: 'images', prompt: 'a cat', count: 2, references: [], sold: 'pieces' }
  const context = { ...plainContext, upstreamModel: 'imagen-4.0-generate-001' }
  const step = google.images?.start(ask as unknown as ImagesAsk, context)
  const answerOf = (predictions: readonly object[]) =>
    step?.kind === 'calls' ? step.next([answer({ predictions })]) : undefined
  const filtered = { raiFilteredReason: 'Blocked by the safety filter.' }
  expect(answerOf([{}, filtered])).toMatchObject({
    kind: 'failed',
    error: { kind: 'upstream-rejected', message: filtered.raiFilteredReason },
    used: [{ usage: { images: { count: 0 } } }],
  })
  const image = { bytesBase64Encoded: 'AAAA', mimeType: 'image/png' }
  expect(answerOf([filtered, image])).toMatchObject({ kind: 'answered', used: [{ usage: { images: { count: 1 } } }] })
})

test('what a Gemini model says in place of an image is passed on, without what it thought', () => {
  const ask = { capability: 'images', prompt: 'a cat', count: 1, references: [], sold: 'pieces' }
  const context = { ...plainContext, upstreamModel: 'gemini-3-pro-image' }
  const step = google.images?.start(ask as unknown as ImagesAsk, context)
  const parts = [{ text: 'The user wants a cat.', thought: true }, { text: 'I draw ' }, { text: 'no cats.' }]
  const body = { candidates: [{ content: { parts }, finishReason: 'STOP' }] }
  expect(step?.kind === 'calls' ? step.next([answer(body)]) : undefined).toMatchObject({
    kind: 'failed',
    error: { kind: 'upstream-rejected', message: 'I draw no cats.' },
  })
})
