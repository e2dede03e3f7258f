import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { connect, lastText, shown, type ToolClient } from '../support/mcp.ts'
import { refusedForFree } from '../support/refused.ts'

/** One sandbox model can use what another made, as with real vendors, but nothing else on this machine. */
let gateway: TestGateway
let client: ToolClient
let visits = 0
let neighbour: ReturnType<typeof Bun.serve>

beforeAll(async () => {
  gateway = await startTestGateway()
  client = await connect(gateway, 'modern')
  neighbour = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () => {
      visits++
      return new Response('secret')
    },
  })
})
afterEach(() => gateway.assertBooks())
afterAll(async () => {
  await client.close()
  await gateway.close()
  await neighbour.stop(true)
})

type Refusal = { code?: string; error?: { code: string; param: string | null } }

/** Models whose vendor gives links, and one whose images the gateway keeps. */
const makers = ['qwen-image-2.0', 'qwen-image-max', 'doubao-seedream-4-0', 'dall-e-2', 'gemini-2.5-flash-image']

async function linkBy(model: string): Promise<string> {
  const made = await client.call('generate_image', { model, prompt: 'A fox', show: 'link' })
  const { images } = shown<{ images: { url: string }[] }>(made)
  expect(images[0]?.url).toStartWith('http://127.0.0.1:')
  return images[0]?.url ?? ''
}

const native = (url: string) => ({
  model: 'qwen-image-edit',
  input: { messages: [{ role: 'user', content: [{ image: url }, { text: 'Make it night.' }] }] },
})
const common = (model: string, url: string) => ({ model, prompt: 'Make it night.', image: [url] })
const video = (model: string, url: string) => ({ model, input: { prompt: 'It runs.', img_url: url } })
const seen = (url: string) => ({
  model: 'gemini-2.5-flash',
  messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
})

describe.each(makers)('an image made by %s', (maker) => {
  test('the edit_image tool accepts the link', async () => {
    const url = await linkBy(maker)
    const edited = await client.call('edit_image', { model: 'gpt-image-1', prompt: 'b', images: [url] })
    expect(edited.isError).not.toBe(true)
    expect(shown<{ images: object[] }>(edited).images).toHaveLength(1)
  })

  test('every path that takes image links accepts the link', async () => {
    const url = await linkBy(maker)
    expect((await gateway.post('/v1/images/generations', native(url))).status).toBe(200)
    // The first vendor is given the link, the second the image behind it.
    expect((await gateway.post('/v1/images/generations', common('qwen-image-edit', url))).status).toBe(200)
    expect((await gateway.post('/v1/images/generations', common('gemini-2.5-flash-image', url))).status).toBe(200)
    expect((await gateway.post('/v1/chat/completions', seen(url))).status).toBe(200)
    for (const model of ['wan2.6-i2v', 'kling-v2-6', 'veo-3.1-generate-preview']) {
      const made = await gateway.post('/v1/videos/generations?wait=true', video(model, url))
      expect([model, made.status]).toEqual([model, 200])
    }
  })
})

/** Lookalikes of such links: another port, another name of this machine, other paths of the simulators and ours. */
const lookalikes = (): string[] => {
  const simulators = gateway.sandboxUrl ?? ''
  const { port } = new URL(simulators)
  const results = '/dashscope/results/1-8x8.png'
  return [
    `http://127.0.0.1:${neighbour.port}${results}`,
    `http://127.0.0.1:${neighbour.port}/?${simulators}${results}`,
    `${simulators}@127.0.0.1:${neighbour.port}${results}`,
    `http://localhost:${port}${results}`,
    `http://127.1:${port}${results}`,
    `http://[::ffff:127.0.0.1]:${port}${results}`,
    `https://127.0.0.1:${port}${results}`,
    `${simulators}/__calls`,
    `${simulators}/dashscope/results/../../__calls`,
    `${simulators}/dashscope/results/%2e%2e/%2e%2e/__bill`,
    `${gateway.url}/v1/models`,
    `${gateway.url}/artifacts/../v1/models`,
    `${gateway.adminUrl}/admin/keys`,
  ]
}

test('links to anything else on this machine are refused and never fetched', async () => {
  for (const url of lookalikes()) {
    await refusedForFree(gateway, async () => {
      const edited = await client.call('edit_image', { model: 'gpt-image-1', prompt: 'b', images: [url] })
      const { error } = lastText(edited) as Refusal
      expect([url, error?.code, error?.param]).toEqual([url, expect.stringMatching(/^invalid_(?:url|link)$/), 'images'])
      for (const [path, body] of [
        ['/v1/images/generations', native(url)],
        ['/v1/images/generations', common('qwen-image-edit', url)],
        ['/v1/images/generations', common('gemini-2.5-flash-image', url)],
        ['/v1/chat/completions', seen(url)],
        ['/v1/videos/generations', video('wan2.6-i2v', url)],
      ] as const) {
        expect([url, path, (await gateway.post(path, body)).status]).toEqual([url, path, 400])
      }
    })
  }
  expect(visits).toBe(0)
})

// A port tells the guard from a plain fetch, and needs no server: the guard refuses this one before it dials.
test('wherever the gateway itself fetches a link, the rules for strangers hold', async () => {
  const url = 'https://8.8.8.8:8443/a.png'
  const edited = await client.call('edit_image', { model: 'gpt-image-1', prompt: 'b', images: [url] })
  const answers = [JSON.stringify(lastText(edited))]
  for (const [path, body] of [
    ['/v1/images/generations', common('gemini-2.5-flash-image', url)],
    ['/v1/chat/completions', seen(url)],
    ['/v1/videos/generations', video('veo-3.1-generate-preview', url)],
  ] as const) {
    answers.push(await (await gateway.post(path, body)).text())
  }
  for (const answer of answers) expect(answer).toContain('URL names a port that is not allowed')
})

test('a video request accepts an http link, and its refusal of ftp says so', async () => {
  const refused = await gateway.post('/v1/videos/generations', video('wan2.6-i2v', 'ftp://example.com/a.png'))
  const { message } = ((await refused.json()) as { error: { message: string } }).error
  expect(message).toContain('expected a public http or https URL, or data:image/… in base64')
  const taken = await gateway.post('/v1/videos/generations?wait=true', video('wan2.6-i2v', 'http://example.com/a.png'))
  expect(taken.status).toBe(200)
})

test('an altered link to an image is refused as invalid_url', async () => {
  const url = (await linkBy('qwen-image-2.0')).replace(/results\/\d/, 'results/7')
  const edited = await client.call('edit_image', { model: 'gpt-image-1', prompt: 'b', images: [url] })
  expect((lastText(edited) as Refusal).error).toMatchObject({ code: 'invalid_url', param: 'images' })
})

test('with real vendors, links of the simulators are refused and not passed on', async () => {
  const url = await linkBy('qwen-image-2.0')
  const real = await startTestGateway({
    yaml: `channels:
  - { id: ali, vendor: dashscope, keys: [k], baseUrl: "${gateway.sandboxUrl}/dashscope" }
  - { id: google, vendor: google, keys: [k], baseUrl: "${gateway.sandboxUrl}/google" }
models:
  - { id: edit, from: qwen-image-edit, prices: { perImage: "0.1" } }`,
  })
  try {
    expect(real.mode).toBe('real')
    await gateway.calls()
    const before = await gateway.callCount()
    for (const body of [native(url), common('edit', url), common('gemini-2.5-flash-image', url)]) {
      expect(
        (await real.post('/v1/images/generations', { ...body, model: body.model.replace('qwen-image-edit', 'edit') }))
          .status,
      ).toBe(400)
    }
    expect(await gateway.callCount()).toBe(before)
  } finally {
    await real.close()
  }
})
