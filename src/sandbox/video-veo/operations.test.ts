import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { jsonOf, until } from '../testing.ts'
import { isLost, openVideos, readMp4, staysQueued, staysRunning } from '../video/testing.ts'

const { sandbox, send, bill, clearBill, lineOf } = openVideos()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

const root = `${sandbox.baseUrl('google')}/v1beta`
const full = 'veo-3.1-generate-preview'
const lite = 'veo-3.1-lite-generate-preview'
const headers = { 'x-goog-api-key': 'key', authorization: '' }
const quick = 'sandbox:queued=0 sandbox:slow=0'

type Operation = {
  name: string
  done?: boolean
  error?: { code: number; message: string }
  response?: {
    generateVideoResponse: { generatedSamples?: { video: { uri: string } }[]; raiMediaFilteredCount?: number }
  }
}
type GoogleError = { error: { code: number; message: string; status: string } }

type Wish = { words?: string; parameters?: object; instance?: object; model?: string; ref?: string }

function post({ words = quick, parameters = {}, instance = {}, model = full, ref }: Wish): Promise<Response> {
  const body = { instances: [{ prompt: `a fox runs ${words}`, ...instance }], parameters }
  return send(`${root}/models/${model}:predictLongRunning`, body, { headers, ...(ref !== undefined && { ref }) })
}
const create = async (wish: Wish): Promise<string> => (await jsonOf<{ name: string }>(post(wish))).name
const get = (name: string): Promise<Operation> => jsonOf(send(`${root}/${name}`, undefined, { headers }))
const end = (name: string): Promise<Operation> =>
  until(async () => {
    const operation = await get(name)
    return operation.done ? operation : undefined
  })
const uriOf = ({ response }: Operation): string =>
  response?.generateVideoResponse.generatedSamples?.[0]?.video.uri ?? ''

describe('a video operation', () => {
  test('an operation is created, runs and ends with a sample', async () => {
    const waits = await create({ words: staysQueued })
    expect(await get(waits)).toEqual({ name: waits })
    const runs = await create({ words: staysRunning })
    await until(async () => ((await get(runs)).done === false ? true : undefined))
    const name = await create({ parameters: { durationSeconds: 6 }, ref: 'one' })
    expect(name).toMatch(new RegExp(`^models/${full}/operations/\\w+$`))
    const done = await end(name)
    expect(done).toMatchObject({ name, done: true })
    expect(uriOf(done)).toStartWith(`${root}/files/`)
    // 6 seconds at 40 cents.
    expect(await bill('one')).toMatchObject([{ units: { video: { seconds: 6, resolution: '720p' } }, cost: '2.4' }])
  })

  test('the file needs the key and redirects to a link that needs none', async () => {
    const uri = uriOf(await end(await create({ parameters: { resolution: '1080p', aspectRatio: '9:16' } })))
    expect((await fetch(uri)).status).toBe(403)
    const redirect = await fetch(uri, { headers, redirect: 'manual' })
    expect(redirect.status).toBe(302)
    const file = await fetch(redirect.headers.get('location') ?? '')
    const facts = readMp4(new Uint8Array(await file.arrayBuffer()))
    expect(facts).toEqual({ width: 1080, height: 1920, ms: 8_000, tracks: 2 })
  })

  test('a video in 4k costs more', async () => {
    await end(await create({ parameters: { resolution: '4k' }, ref: 'large' }))
    expect(await bill('large')).toMatchObject([{ cost: '4.8' }])
  })

  const image = { bytesBase64Encoded: 'AAAA', mimeType: 'image/png' }
  test.each<[Wish, string]>([
    [{ parameters: { durationSeconds: 5 } }, 'out of bound. Please provide a value between 4 and 8, inclusive.'],
    [{ parameters: { durationSeconds: '8' } }, 'needs to be a number'],
    [{ parameters: { durationSeconds: 4, resolution: '1080p' } }, 'must be 8'],
    [
      { parameters: { durationSeconds: 4 }, instance: { referenceImages: [{ image, referenceType: 'asset' }] } },
      'must be 8',
    ],
    [{ model: lite, instance: { referenceImages: [{ image }] } }, "`referenceImages` isn't supported"],
    [{ model: lite, parameters: { resolution: '4k' } }, '`resolution`'],
    [{ parameters: { aspectRatio: '1:1' } }, '`aspectRatio`'],
    [{ parameters: { generateAudio: true } }, "`generateAudio` isn't supported by this model."],
    [{ parameters: { sampleCount: 2 } }, '`sampleCount`'],
    [{ instance: { image: { inlineData: { data: 'AAAA' } } } }, "`inlineData` isn't supported"],
    [{ instance: { prompt: '' } }, 'prompt'],
  ])('a request that breaks a rule is refused with a 400 and costs nothing: %j', async (wish, message) => {
    const response = await post({ ...wish, ref: 'refused' })
    expect(response.status).toBe(400)
    const { error } = await jsonOf<GoogleError>(response)
    expect(error).toMatchObject({ code: 400, status: 'INVALID_ARGUMENT' })
    expect(error.message).toContain(message)
    expect(await bill('refused')).toMatchObject([{ status: 400, cost: '0' }])
  })

  test('images are accepted as base64 bytes', async () => {
    expect((await post({ instance: { image, lastFrame: image } })).status).toBe(200)
  })

  test('a chat model and an unknown operation are a 404', async () => {
    expect((await post({ model: 'gemini-2.5-flash' })).status).toBe(404)
    expect((await send(`${root}/models/${full}/operations/none`, undefined, { headers })).status).toBe(404)
  })
})

describe('steering words in the prompt', () => {
  test('fail ends the operation with an error, without cost', async () => {
    const name = await create({ words: `${quick} sandbox:fail=RESOURCE_EXHAUSTED`, ref: 'failed' })
    expect(await end(name)).toMatchObject({ done: true, error: { code: 8, message: expect.any(String) } })
    expect(await bill('failed')).toMatchObject([{ cost: '0' }])
  })

  test('blocked filters the video out of the response, without cost', async () => {
    const { response } = await end(await create({ words: `${quick} sandbox:blocked`, ref: 'blocked' }))
    expect(response?.generateVideoResponse).toMatchObject({ raiMediaFilteredCount: 1 })
    expect(response?.generateVideoResponse).not.toHaveProperty('generatedSamples')
    expect(await bill('blocked')).toMatchObject([{ cost: '0' }])
  })

  test('lost closes the connection but bills the operation, and vanish makes it a 404', async () => {
    expect(await isLost(post({ words: `${quick} sandbox:lost`, ref: 'lost' }))).toBe(true)
    expect(await lineOf('lost')).toMatchObject({ cost: '3.2' })
    const name = await create({ words: 'sandbox:vanish' })
    expect((await send(`${root}/${name}`, undefined, { headers })).status).toBe(404)
  })
})
