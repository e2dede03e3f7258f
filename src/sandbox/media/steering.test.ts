import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import { openMedia } from './testing.ts'

const { sandbox, post, bill, clearBill } = openMedia()
afterAll(() => sandbox.stop())
beforeEach(() => clearBill())

/** One call of each protocol. */
const protocols = {
  embeddings: (text: string) => post('/openai/v1/embeddings', { model: 'text-embedding-3-small', input: text }),
  voyage: (text: string) => post('/voyage/v1/embeddings', { model: 'voyage-3.5', input: text }),
  cohere: (text: string) =>
    post('/cohere/v2/embed', { model: 'embed-v4.0', texts: [text], input_type: 'search_query' }),
  images: (text: string) => post('/openai/v1/images/generations', { model: 'gpt-image-2', prompt: text }),
  speech: (text: string) => post('/openai/v1/audio/speech', { model: 'tts-1', input: text, voice: 'alloy' }),
  dashscope: (text: string) =>
    post('/dashscope/api/v1/services/aigc/multimodal-generation/generation', {
      model: 'qwen-image-2.0',
      input: { messages: [{ role: 'user', content: [{ text }] }] },
    }),
  seedream: (text: string) =>
    post('/ark/api/v3/images/generations', { model: 'doubao-seedream-4-5-251128', prompt: text }),
  imagen: (text: string) =>
    post('/google/v1beta/models/imagen-4.0-generate-001:predict', { instances: [{ prompt: text }] }),
  gemini: (text: string) =>
    post('/google/v1beta/models/gemini-2.5-flash-image:generateContent', { contents: [{ parts: [{ text }] }] }),
}

const breaksOff = (read: Promise<unknown>): Promise<boolean> =>
  read.then(
    () => false,
    () => true,
  )

describe.each(Object.entries(protocols))('steering words in %s', (name, ask) => {
  test('status, fail and html answer as told and cost nothing', async () => {
    const words = ['status=429', 'status=500', 'status=503', 'fail=anything', 'html']
    const answers = await Promise.all(words.map((word) => ask(`hello sandbox:${word}`)))
    expect(answers.map(({ status }) => status)).toEqual([429, 500, 503, 400, 200])
    expect(new Set((await bill()).map(({ cost }) => cost))).toEqual(new Set(['0']))
  })

  test('status=400 and error200 answer with JSON and cost nothing', async () => {
    for (const word of ['status=400', 'error200']) {
      expect(await (await ask(`hello sandbox:${word}`)).json()).toBeObject()
    }
    expect((await bill()).map(({ status, cost }) => [status, cost])).toEqual([
      [400, '0'],
      [200, '0'],
    ])
  })

  test('leak repeats the key', async () => {
    expect(await (await ask('hello sandbox:leak')).text()).toContain('vendor-key')
  })

  test('charge-then-fail fails the request and bills it', async () => {
    expect((await ask('hello sandbox:charge-then-fail=503')).status).toBe(503)
    const [line, ...others] = await bill()
    expect([line?.status, line?.cost === '0', others]).toEqual([503, false, []])
  })

  test('zero costs nothing and usage=7 bills 7 units', async () => {
    await (await ask('hello sandbox:zero')).text()
    await (await ask('hello sandbox:usage=7')).text()
    await (await ask('hello sandbox:usage=-7')).text()
    const [zero, seven, negative] = await bill()
    expect([zero?.status, zero?.cost]).toEqual([200, '0'])
    expect(JSON.stringify(seven?.units)).toContain(':7')
    expect(JSON.stringify(negative?.units)).not.toContain('-')
  })

  test('nousage leaves the usage out of the answer but bills it', async () => {
    const answer = await (await ask('hello sandbox:nousage')).text()
    expect(/"(usage\w*|billed_units)":/.exec(answer)).toBeNull()
    expect((await bill())[0]?.cost).not.toBe('0')
  })

  test('cut=0 breaks off the response, which is billed except for speech', async () => {
    expect(await breaksOff(ask('hello sandbox:cut=0').then((response) => response.arrayBuffer()))).toBe(true)
    // Speech is sent as it is read, so nothing was sent and nothing is charged.
    expect((await bill())[0]?.cost === '0').toBe(name === 'speech')
  })

  test('headers adds unusual headers', async () => {
    expect((await ask('hello sandbox:headers')).headers.get('x-odd-50')).toBe('odd value 50')
  })

  test('a request without steering words is answered and billed', async () => {
    expect((await (await ask('hello')).text()).length).toBeGreaterThan(0)
    expect(await bill()).toMatchObject([{ status: 200 }])
  })
})

const say = (words: string) =>
  post('/openai/v1/audio/speech', {
    model: 'tts-1',
    input: `${'hello '.repeat(100)}${words}`,
    voice: 'alloy',
    response_format: 'wav',
  })

describe('steering words in streams', () => {
  test('an audio stream cut off after two pieces is billed in full', async () => {
    const response = await say('sandbox:cut=2')
    let bytes = 0
    const read = async () => {
      for await (const piece of response.body ?? []) bytes += piece.length
    }
    expect(await breaksOff(read())).toBe(true)
    expect(bytes).toBe(2 * 16_384)
    expect(await bill()).toMatchObject([{ status: 200, units: { characters: 613 } }])
  })

  test('eof=3 ends an audio stream after three pieces', async () => {
    expect((await (await say('sandbox:eof=3')).arrayBuffer()).byteLength).toBe(3 * 16_384)
  })

  test('a stream that the client aborts is billed with status 499', async () => {
    const stop = new AbortController()
    const response = await fetch(`${sandbox.url}/openai/v1/audio/speech`, {
      method: 'POST',
      headers: { authorization: 'Bearer k' },
      body: JSON.stringify({ model: 'tts-1', input: 'hello sandbox:endless sandbox:pace=1', voice: 'alloy' }),
      signal: stop.signal,
    })
    await response.body?.getReader().read()
    stop.abort()
    for (;;) {
      const [line] = await bill()
      if (line === undefined) continue
      expect(line).toMatchObject({ status: 499, units: { characters: 36 } })
      break
    }
  })

  test('midstream-error ends a stream of images with an error event', async () => {
    const body = { model: 'gpt-image-2', prompt: 'a sandbox:midstream-error', stream: true, partial_images: 3 }
    const text = await (await post('/openai/v1/images/generations', body)).text()
    expect(text.match(/^event: .*$/gm)?.at(-1)).toBe('event: error')
  })
})
