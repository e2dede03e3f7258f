import { describe, expect, test } from 'bun:test'
import type { ImageAskBase } from '../../capabilities/images.ts'
import { passStream } from './images-stream.ts'

function ask(count: number): ImageAskBase {
  return { capability: 'images', count } as ImageAskBase
}

const event = (type: string, more: object = {}) =>
  Buffer.from(`event: ${type}\ndata: ${JSON.stringify({ type, b64_json: 'AAAA', created_at: 1, ...more })}\n\n`)
const partial = event('image_generation.partial_image', { partial_image_index: 0 })
const completed = (output: number) =>
  event('image_generation.completed', {
    usage: { input_tokens: 5, input_tokens_details: { text_tokens: 5, image_tokens: 0 }, output_tokens: output },
  })

describe('a stream of images', () => {
  test('previews are forwarded unchanged, and the last image is held back with its usage', () => {
    const stream = passStream(ask(1))
    expect(stream.take(partial)).toBe(partial)
    expect(stream.facts).toMatchObject({ outputEvents: 1, ended: false, finished: false, usage: undefined })
    const last = completed(1056)
    expect(stream.take(last)).toBeUndefined()
    expect(stream.facts).toMatchObject({ ended: true, finished: true, usage: { input: 5, imageOutput: 1056 } })
    expect(stream.closing()).toBe(last)
  })

  test.each([
    ['from the first preview', [event('image_generation.partial_image', { size: '1024x1536', quality: 'low' })]],
    ['from the image', [partial, event('image_generation.completed', { size: '1024x1536', quality: 'low' })]],
  ])('images and previews so far are counted, with size and quality %s', (_name, events) => {
    const stream = passStream(ask(2))
    for (const one of events) stream.take(one)
    const images = events.length - 1
    expect(stream.shown).toEqual({ images, previews: 1, looks: { size: '1024x1536', quality: 'low' } })
  })

  test.each([
    [{ type: 'image_generation.queued', position: 3 }, 0],
    [{ created_at: 1 }, 0],
    [{ type: 'image_generation.preview', b64_json: 'AAAA' }, 1],
    [{ b64_json: 'AAAA' }, 1],
  ])('an event of another type is forwarded, and is a preview only if it brings an image: %j', (data, previews) => {
    const stream = passStream(ask(1))
    const other = Buffer.from(`data: ${JSON.stringify(data)}\n\n`)
    expect(stream.take(other)).toBe(other)
    expect(stream.shown).toMatchObject({ images: 0, previews })
    expect(stream.facts.outputEvents).toBe(previews)
  })

  test('all images but the last are forwarded, and their usage is summed', () => {
    const stream = passStream(ask(2))
    const first = completed(100)
    expect(stream.take(first)).toBe(first)
    expect(stream.facts.ended).toBe(false)
    expect(stream.take(completed(200))).toBeUndefined()
    expect(stream.facts).toMatchObject({ ended: true, usage: { input: 10, imageOutput: 300 } })
  })

  test('each kind of token is summed by itself', () => {
    const stream = passStream(ask(2))
    for (const times of [1, 2]) {
      const input_tokens_details = { text_tokens: 3 * times, image_tokens: 7 * times, cached_tokens: 2 * times }
      const output_tokens_details = { text_tokens: 11 * times, image_tokens: 100 * times }
      const [input_tokens, output_tokens] = [10 * times, 111 * times]
      const usage = { input_tokens, input_tokens_details, output_tokens, output_tokens_details }
      stream.take(event('image_generation.completed', { usage }))
    }
    expect(stream.facts.usage).toMatchObject({
      input: 3,
      cachedInput: 6,
      imageInput: 21,
      output: 33,
      imageOutput: 300,
    })
  })

  test.each([
    ['an error event', { type: 'error', error: { message: 'It broke.', type: 'server_error' } }],
    ['an error without a type', { error: { message: 'It broke.' } }],
    ['an error as text', { error: 'It broke.', code: 'x' }],
    ['an event that is the error itself', { type: 'error', message: 'It broke.', code: 'x' }],
  ])('an error in the stream is a failure with the vendor’s message: %s', (_name, data) => {
    const stream = passStream(ask(1))
    expect(stream.take(Buffer.from(`data: ${JSON.stringify(data)}\n\n`))).toBeUndefined()
    expect(stream.facts.failure?.message).toBe('It broke.')
  })

  test('a completed image that cannot be parsed is a failure', () => {
    const stream = passStream(ask(1))
    stream.take(Buffer.from('event: x\ndata: {"type":"image_generation.completed","b64_json":"AA\n\n'))
    expect(stream.facts).toMatchObject({ ended: false, failure: { kind: 'upstream-failed' } })
  })

  test('comments are forwarded, and [DONE] ends the stream', () => {
    const stream = passStream(ask(2))
    const comment = Buffer.from(': ping\n\n')
    expect(stream.take(comment)).toBe(comment)
    expect(stream.facts.outputEvents).toBe(0)
    stream.take(completed(100))
    expect(stream.take(Buffer.from('data: [DONE]\n\n'))).toBeUndefined()
    expect(stream.facts).toMatchObject({ ended: true, finished: false })
    expect(stream.closing()).toHaveLength(0)
  })
})
