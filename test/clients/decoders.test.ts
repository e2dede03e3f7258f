import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { createWriteStream, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { toFile, type OpenAI } from 'openai'
import type { Browser, Page } from 'playwright-core'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { openaiClient } from '../support/clients.ts'
import { browserTimeoutMs, hasBrowser, launchBrowser } from '../support/browser.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { paddedPng } from '../support/large-image.ts'
import { speakers } from '../support/speech.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

// A browser, as an independent decoder, decodes the files that clients send and get, to the last pixel and sample.

// Scripts are strings, since the types of a browser page are not known here.
const blobOf = (base64: string) => `new Blob([Uint8Array.from(atob('${base64}'), (c) => c.charCodeAt(0))])`

const model = 'gpt-image-1.5'
const prompt = 'A cat on a roof'
const draw = (format: 'png' | 'jpeg' | 'webp', isTransparent = false) =>
  drawImage({ width: 256, height: 256, format, seed: 1, isTransparent })
const file = async (isTransparent: boolean) => toFile(draw('png', isTransparent), 'cat.png', { type: 'image/png' })

describe.skipIf(!hasBrowser)('files decoded by a browser', () => {
  let gateway: TestGateway
  let client: OpenAI
  let browser: Browser
  let page: Page
  const folder = temporaryFolder('files')

  beforeAll(async () => {
    gateway = await startTestGateway({ mode: 'leased' })
    client = openaiClient(gateway)
    browser = await launchBrowser()
    page = await browser.newPage()
  }, browserTimeoutMs)
  afterEach(() => gateway.assertBooks())
  afterAll(async () => {
    await browser.close()
    await gateway.close()
  })

  /** The size, and the alpha of the least and the most opaque pixel; throws if the image cannot be decoded. */
  function decodeImage(base64: string): Promise<{ width: number; height: number; alpha: [number, number] }> {
    return page.evaluate(`(async () => {
      const map = await createImageBitmap(${blobOf(base64)})
      const canvas = new OffscreenCanvas(map.width, map.height).getContext('2d')
      canvas.drawImage(map, 0, 0)
      const { data } = canvas.getImageData(0, 0, map.width, map.height)
      let [least, most] = [255, 0]
      for (let at = 3; at < data.length; at += 4) [least, most] = [Math.min(least, data[at]), Math.max(most, data[at])]
      return { width: map.width, height: map.height, alpha: [least, most] }
    })()`)
  }

  function decodeAudio(file: Buffer): Promise<{ seconds: number; channels: number; loudest: number }> {
    return page.evaluate(`(async () => {
      const bytes = await ${blobOf(file.toString('base64'))}.arrayBuffer()
      const sound = await new OfflineAudioContext(1, 1, 24000).decodeAudioData(bytes)
      const loudest = sound.getChannelData(0).reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)
      return { seconds: sound.duration, channels: sound.numberOfChannels, loudest }
    })()`)
  }

  test.each(['png', 'jpeg', 'webp'] as const)(
    'a %s that the tests send is decoded, and one that breaks off in its head is not',
    async (format) => {
      const file = draw(format)
      expect(await decodeImage(file.toString('base64'))).toMatchObject({ width: 256, height: 256, alpha: [255, 255] })
      expect(decodeImage(file.subarray(0, 18).toString('base64'))).rejects.toThrow()
    },
    browserTimeoutMs,
  )

  test(
    'transparent masks and large images are decoded',
    async () => {
      const { alpha, ...size } = await decodeImage(draw('png', true).toString('base64'))
      expect(size).toEqual({ width: 256, height: 256 })
      expect(alpha[0]).toBeLessThan(255)
      expect(await decodeImage(paddedPng(1_000_000).toString('base64'))).toMatchObject(size)
    },
    browserTimeoutMs,
  )

  test.each(['png', 'jpeg', 'webp'] as const)(
    'an edit of several images with a mask is decoded as %s',
    async (output_format) => {
      const { data } = await client.images.edit({
        model,
        prompt,
        image: [await file(false), await file(false)],
        mask: await file(true),
        size: '1536x1024',
        output_format,
      })
      expect(await decodeImage(data?.[0]?.b64_json ?? '')).toMatchObject({ width: 1536, height: 1024 })
    },
    browserTimeoutMs,
  )

  test.each([
    model,
    'dall-e-2',
    'qwen-image-max',
    'doubao-seedream-4-0',
    'imagen-4.0-generate-001',
    'gemini-3-pro-image',
  ])(
    'an image of %s is decoded',
    async (id) => {
      const format = id === model ? {} : ({ response_format: 'b64_json' } as const)
      const { data } = await client.images.generate({ model: id, prompt, ...format })
      expect((await decodeImage(data?.[0]?.b64_json ?? '')).width).toBeGreaterThanOrEqual(256)
    },
    browserTimeoutMs,
  )

  test.each(speakers.flatMap((id) => (['mp3', 'wav'] as const).map((format) => [id, format] as const)))(
    'speech of %s is decoded as %s',
    async (id, response_format) => {
      const input = 'The sea is calm tonight. The tide is full, the moon lies fair upon the straits.'
      const response = await client.audio.speech.create({ model: id, input, voice: 'alloy', response_format })
      const path = join(folder, `${id}.${response_format}`)
      await pipeline(Readable.from(response.body ?? []), createWriteStream(path))
      const { seconds, loudest } = await decodeAudio(readFileSync(path))
      expect(seconds).toBeGreaterThan(1)
      // The simulator of the common protocol has only silence in mp3; everything else is a tone.
      const isSilent = response_format === 'mp3' && !id.startsWith('qwen') && !id.startsWith('gemini')
      if (!isSilent) expect(loudest).toBeGreaterThan(0.01)
    },
    browserTimeoutMs,
  )

  const say = async (input: string, response_format: 'mp3' | 'wav') => {
    const response = await client.audio.speech.create({
      model: 'qwen3-tts-flash',
      input,
      voice: 'Cherry',
      response_format,
    })
    return (await decodeAudio(Buffer.from(await response.arrayBuffer()))).seconds
  }

  test(
    'long speech that is joined from parts is as long as its parts',
    async () => {
      const sentence = 'Every sentence is said once. '
      const [one, mp3, wav] = [
        await say(sentence, 'wav'),
        await say(sentence.repeat(60), 'mp3'),
        await say(sentence.repeat(60), 'wav'),
      ]
      expect(wav / one).toBeWithin(40, 70)
      expect(Math.abs(mp3 - wav)).toBeLessThan(1)
    },
    browserTimeoutMs,
  )
})
