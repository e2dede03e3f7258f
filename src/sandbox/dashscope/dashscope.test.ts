import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { recordAudio } from '../files/audio.ts'
import { readImageHeader } from '../files/image-header.ts'
import { drawImage } from '../files/image.ts'
import { bytesOf, openMedia } from '../media/testing.ts'
import { jsonOf } from '../testing.ts'

const { sandbox, post, bill, clearBill } = openMedia()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const path = '/dashscope/api/v1/services/aigc/multimodal-generation/generation'
const image = 'https://example.com/a.png'

type Refused = { code: string; message: string; request_id: string }
type Images = {
  output: { choices: { finish_reason: string; message: { role: string; content: { image: string }[] } }[] }
  usage: { image_count: number; width: number; height: number }
  request_id: string
}

const draw = (model: string, content: unknown[], parameters: object = {}) =>
  post(path, { model, input: { messages: [{ role: 'user', content }] }, parameters })

const fox = { text: 'a red fox' }

describe('Qwen images', () => {
  test('the images are links in one choice and are billed per image', async () => {
    const response = await draw('qwen-image-2.0', [fox], { n: 2, size: '1033*1032', seed: 7 })
    const { output, usage, request_id: id } = await jsonOf<Images>(response)
    expect(response.headers.get('x-request-id')).toBe(id)
    expect(usage).toEqual({ image_count: 2, width: 1040, height: 1024 })
    const content = output.choices[0]?.message.content ?? []
    expect([output.choices.length, content.length]).toEqual([1, 2])
    for (const { image } of content) {
      expect(readImageHeader(await bytesOf(fetch(image)))).toMatchObject({ width: 1040, height: 1024, format: 'png' })
    }
    expect(await bill()).toMatchObject([{ units: { images: { count: 2, size: '1040x1024' } }, cost: '0.00008' }])
  })

  test.each([
    ['qwen-image-2.0', [fox], 2048, 2048],
    ['qwen-image-max', [fox], 1664, 928],
    ['qwen-image-edit', [{ image }, fox], 1024, 1024],
  ] as const)("an image of %s has the model's default size", async (model, content, width, height) => {
    expect((await jsonOf<Images>(draw(model, [...content]))).usage).toEqual({ image_count: 1, width, height })
  })

  test('an edit takes the aspect ratio of the last input image', async () => {
    const file = drawImage({ width: 200, height: 100, format: 'png', seed: 1 }).toString('base64')
    const content = [{ image }, { image: `data:image/png;base64,${file}` }, fox]
    const { usage } = await jsonOf<Images>(draw('qwen-image-edit-plus', content))
    expect(usage).toMatchObject({ width: 1456, height: 720 })
  })

  test('a failed image is missing from the answer and costs nothing', async () => {
    const { usage } = await jsonOf<Images>(draw('qwen-image-2.0', [{ text: 'a fox sandbox:fail-image=1' }], { n: 3 }))
    expect(usage.image_count).toBe(2)
    expect(await bill()).toMatchObject([{ units: { images: { count: 2 } } }])
  })

  test.each([
    ['an edit without an image', 'qwen-image-edit', [fox], {}],
    ['an edit of four images', 'qwen-image-edit', [{ image }, { image }, { image }, { image }, fox], {}],
    ['an image for a model that takes none', 'qwen-image-max', [{ image }, fox], {}],
    ['no text', 'qwen-image-2.0', [{ image }], {}],
    ['two texts', 'qwen-image-2.0', [fox, fox], {}],
    ['a size that is not on the list', 'qwen-image-max', [fox], { size: '1472*1140' }],
    ['a size written with x', 'qwen-image-2.0', [fox], { size: '1024x1024' }],
    ['too many pixels', 'qwen-image-2.0', [fox], { size: '2688*2688' }],
    ['a size for a model that takes none', 'qwen-image-edit', [{ image }, fox], { size: '1024*1024' }],
    [
      'prompt_extend for a model that does not rewrite prompts',
      'qwen-image-edit',
      [{ image }, fox],
      { prompt_extend: true },
    ],
    ['seven images', 'qwen-image-2.0', [fox], { n: 7 }],
    ['a negative seed', 'qwen-image-2.0', [fox], { seed: -1 }],
  ])('a request is refused with a 400 and costs nothing: %s', async (_, model, content, parameters) => {
    const response = await draw(model, content, parameters)
    const refused = await jsonOf<Refused>(response)
    expect([response.status, refused.code]).toEqual([400, 'InvalidParameter'])
    expect(response.headers.get('x-request-id')).toBe(refused.request_id)
    expect(await bill()).toMatchObject([{ status: 400, cost: '0' }])
  })

  test("two images are refused with the vendor's own message where n must be 1", async () => {
    expect(await jsonOf<Refused>(draw('qwen-image-max', [fox], { n: 2 }))).toMatchObject({
      message: 'num_images_per_prompt must be 1',
    })
  })

  test('an asynchronous request is refused with a 403', async () => {
    const body = { model: 'qwen-image-2.0', input: { messages: [] } }
    const response = await post(path, body, { 'x-dashscope-async': 'enable' })
    expect([response.status, await response.json()]).toMatchObject([403, { code: 'AccessDenied' }])
  })
})

type Spoken = {
  output: { finish_reason: string; audio: { data: string; url: string; expires_at: number } }
  usage: { characters: number; input_tokens: number; output_tokens: number }
}

const say = (input: object, more: { model?: string; sse?: boolean } = {}) =>
  post(
    path,
    { model: more.model ?? 'qwen3-tts-flash', input: { voice: 'Cherry', ...input } },
    more.sse ? { 'x-dashscope-sse': 'enable' } : {},
  )

const eventsOf = async (response: Response | Promise<Response>) =>
  (await (await response).text())
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => {
      const [id, name, status, data = ''] = event.split('\n')
      const spoken: Spoken = JSON.parse(data.slice('data:'.length))
      return { id, name, status, spoken }
    })

describe('Qwen speech', () => {
  test('speech is a link to a WAV file, and a Han character counts twice', async () => {
    const { output, usage } = await jsonOf<Spoken>(say({ text: 'Hello 你好' }))
    expect([output.finish_reason, output.audio.data]).toEqual(['stop', ''])
    expect(usage).toEqual({ characters: 10, input_tokens: 0, output_tokens: 0 })
    const file = await fetch(output.audio.url)
    expect(file.headers.get('content-type')).toBe('audio/wav')
    expect(await bytesOf(file)).toEqual(recordAudio('wav', 8 * 60))
    expect(await bill()).toMatchObject([{ units: { characters: 10 }, cost: '0.00000015' }])
  })

  test('a stream sends bare samples with finish_reason "null", then the link', async () => {
    const events = await eventsOf(say({ text: 'The quick brown fox' }, { sse: true }))
    expect(events[0]).toMatchObject({ id: 'id:1', name: 'event:result', status: ':HTTP_STATUS/200' })
    const last = events.at(-1)?.spoken
    expect(events.slice(0, -1).map(({ spoken }) => spoken.output.finish_reason)).not.toContain('stop')
    expect(events[0]?.spoken.output.finish_reason).toBe('null')
    expect([last?.output.finish_reason, last?.usage.characters]).toEqual(['stop', 19])
    const samples = Buffer.concat(events.map(({ spoken }) => Buffer.from(spoken.output.audio.data, 'base64')))
    expect(samples).toEqual(recordAudio('pcm', 19 * 60))
    expect((await bytesOf(fetch(last?.output.audio.url ?? ''))).subarray(44)).toEqual(samples)
    expect(await bill()).toMatchObject([{ status: 200, units: { characters: 19 } }])
  })

  test.each([
    ['an unknown voice', { text: 'hi', voice: 'alloy' }, undefined, "Voice 'alloy' is not supported."],
    ['a voice of another model', { text: 'hi', voice: 'Jennifer' }, 'qwen3-tts-instruct-flash', 'is not supported.'],
    ['no voice', { text: 'hi', voice: undefined }, undefined, 'Field required: input.voice'],
    ['no text', {}, undefined, 'Field required: input.text'],
    ['a text of 601 characters', { text: 'a'.repeat(601) }, undefined, 'Range of input length'],
    ['an unknown language', { text: 'hi', language_type: 'Klingon' }, undefined, 'language_type'],
  ])('a speech request is refused with a 400: %s', async (_, input, model, message) => {
    const response = await say(input, model === undefined ? {} : { model })
    const refused = await jsonOf<Refused>(response)
    expect([response.status, refused.code]).toEqual([400, 'InvalidParameter'])
    expect(refused.message).toContain(message)
  })

  test('a stream that is refused has status 200 and the real status in its event', async () => {
    const response = await say({ text: 'hi', voice: 'alloy' }, { sse: true })
    expect(response.status).toBe(200)
    expect(await response.text()).toStartWith('id:1\nevent:error\n:HTTP_STATUS/400\ndata:{"code":"InvalidParameter"')
    expect(await bill()).toMatchObject([{ status: 400, cost: '0' }])
  })

  test('qwen-tts is billed by tokens', async () => {
    const { usage } = await jsonOf<Spoken>(say({ text: 'The quick brown fox' }, { model: 'qwen-tts' }))
    expect(usage).toEqual({ characters: 0, input_tokens: 4, output_tokens: 57 })
    expect(await bill()).toMatchObject([{ units: { input: 4, audioOutput: 57 } }])
  })

  test('CosyVoice has an address and formats of its own', async () => {
    const body = { model: 'cosyvoice-v3', input: { text: 'Hello', voice: 'longanyang', format: 'mp3' } }
    const { output } = await jsonOf<Spoken>(post('/dashscope/api/v1/services/audio/tts/SpeechSynthesizer', body))
    expect(await bytesOf(fetch(output.audio.url))).toEqual(recordAudio('mp3', 300))
  })
})

describe('keys and models', () => {
  test.each([
    ['no key', { authorization: '' }, 401, 'InvalidApiKey'],
    ['a bad key', { authorization: 'Bearer bad-key' }, 401, 'InvalidApiKey'],
    ['an unknown model', {}, 404, 'ModelNotFound'],
  ])('a request with %s is refused', async (_, headers: Record<string, string>, status, code) => {
    const response = await post(path, { model: 'none', input: {} }, headers)
    expect([response.status, (await jsonOf<Refused>(response)).code]).toEqual([status, code])
  })

  test('a model of another kind is refused', async () => {
    const response = await post(path, { model: 'text-embedding-v4', input: {} })
    expect([response.status, (await jsonOf<Refused>(response)).code]).toEqual([400, 'InvalidParameter'])
  })
})
