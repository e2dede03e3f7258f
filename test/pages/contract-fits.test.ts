import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { z } from 'zod'
import type { Document, Response as Shown } from '../../scripts/openapi/types.ts'
import { png } from '../support/clients.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { videosOf } from '../support/ordered-videos.ts'

/** What is answered, held against `/openapi.json` as a client that is generated from it would. */

let gateway: TestGateway
let contract: Document
const { idle } = videosOf(() => gateway)

beforeAll(async () => {
  gateway = await startTestGateway()
  contract = (await (await fetch(`${gateway.url}/openapi.json`)).json()) as Document
})
afterAll(async () => {
  await idle()
  await gateway.assertBooks()
  await gateway.close()
})

/** What a path is said to answer with a status. */
function shownBy(path: string, status: number): NonNullable<Shown['content'][string]> {
  const told = contract.paths[path]?.['post']?.responses[status]
  const response = told !== undefined && '$ref' in told ? contract.components.responses[nameIn(told.$ref)] : told
  const shown = response?.content['application/json']
  if (shown === undefined) throw new Error(`${path} is not said to answer ${status}`)
  return shown
}

function expectFit(path: string, status: number, body: unknown): void {
  const { schema } = shownBy(path, status)
  const named = schema.$ref === undefined ? schema : contract.components.schemas[nameIn(schema.$ref)]
  // Its type is that of any JSON schema; ours has those words that the contract uses.
  const parsed = z.fromJSONSchema(named as z.core.JSONSchema.JSONSchema).safeParse(body)
  expect({ path, status, misfits: parsed.error?.issues ?? [] }).toEqual({ path, status, misfits: [] })
}

function nameIn(ref: string): string {
  return ref.split('/').at(-1) ?? ''
}

const says = (content: string) => [{ role: 'user', content }]

describe('errors', () => {
  // Its body passes as it came: OpenAI's has no code for much of it, and Alibaba's has fields beside `error`.
  test.each([
    ['/v1/chat/completions', 400, { model: 'qwen-plus', messages: says('sandbox:status=400') }],
    ['/v1/chat/completions', 422, { model: 'gpt-4o-mini', messages: says('sandbox:status=422') }],
    ['/v1/messages', 400, { model: 'claude-sonnet-4-5', max_tokens: 9, messages: says('sandbox:status=400') }],
    ['/v1/responses', 409, { model: 'gpt-4o-mini', input: 'sandbox:status=409' }],
    ['/v1/embeddings', 400, { model: 'text-embedding-3-small', input: 'sandbox:status=400' }],
    ['/v1/images/generations', 400, { model: 'gpt-image-1', prompt: 'sandbox:status=400' }],
    ['/v1/audio/speech', 400, { model: 'tts-1', input: 'sandbox:status=400' }],
    ['/v1/videos/generations', 422, { model: 'sora-2', input: { prompt: 'sandbox:status=422' } }],
  ] as const)("a vendor's refusal on %s has the shape that the contract gives for %d", async (path, status, body) => {
    const refused = await gateway.post(path, body)
    expect(refused.status).toBe(status)
    expectFit(path, status, await refused.json())
  })

  test('a 402 has the shape and the fields that the contract gives for each path', async () => {
    const { key } = await gateway.account({ dollars: '0' })
    const form = new FormData()
    form.set('model', 'gpt-image-1')
    form.set('prompt', 'Add a boat')
    form.set('image', new File([Buffer.from(png, 'base64')], 'sea.png'))
    const bodies = {
      '/v1/chat/completions': JSON.stringify({ model: 'gpt-4o-mini', messages: says('Hello!') }),
      '/v1/audio/speech': JSON.stringify({ model: 'tts-1', input: 'Hello!' }),
      '/v1/images/edits': form,
    }
    for (const [path, body] of Object.entries(bodies)) {
      const type = typeof body === 'string' ? { 'content-type': 'application/json' } : {}
      const headers = { authorization: `Bearer ${key}`, ...type }
      const refused = await fetch(gateway.url + path, { method: 'POST', headers, body })
      const told = (await refused.json()) as { error: object }
      expectFit(path, 402, told)
      const examples = Object.values(shownBy(path, 402).examples ?? {}).map(({ value }) => Object.keys(value.error))
      expect({ path, fields: [Object.keys(told.error)] }).toEqual({ path, fields: examples })
    }
  })
})

describe('videos', () => {
  const path = '/v1/videos/generations'
  const prompt = 'A fox.'
  const url = 'https://example.com/a.png'

  // Some vendors have an `error` in every record, which is null until there is one.
  test.each(['wan2.6-t2v', 'doubao-seedance-1-5-pro-251215', 'sora-2'])(
    'the records of succeeded and failed tasks of %s fit the contract',
    async (model) => {
      for (const status of ['succeeded', 'failed']) {
        const text = status === 'failed' ? `${prompt} sandbox:fail=InternalError` : prompt
        const video = await gateway.post(`${path}?wait=true`, { model, input: { prompt: text } })
        const record = (await video.json()) as { status: string }
        expect(record.status).toBe(status)
        expectFit(path, 200, record)
      }
    },
  )

  const multi = { size: '1280*720', duration: 5, audio: true, shot_type: 'multi', prompt_extend: true }
  const parameters = { resolution: '720P', duration: 5, prompt_extend: true, watermark: false }
  const media = [{ type: 'first_frame', url }]

  test.each([
    { name: 'text to video, wan2.6', status: 202, body: { model: 'wan2.6-t2v', input: { prompt }, parameters: multi } },
    { name: 'text to video, wan2.7', status: 202, body: { model: 'wan2.7-t2v', input: { prompt }, parameters } },
    { name: 'image to video, wan2.6', status: 202, body: { model: 'wan2.6-i2v', input: { prompt, img_url: url } } },
    {
      name: 'image to video, wan2.7',
      status: 202,
      body: { model: 'wan2.7-i2v', input: { prompt, media }, parameters },
    },
    {
      name: 'references, wan2.6',
      status: 202,
      body: { model: 'wan2.6-r2v', input: { prompt, reference_urls: [url] } },
    },
    {
      name: 'a duration as a string',
      status: 202,
      body: { model: 'kling-v2-6', input: { prompt }, parameters: { duration: '5' } },
    },
    {
      name: 'null fields',
      status: 202,
      body: { model: 'wan2.6-t2v', input: { prompt, media: null }, parameters: { audio: null }, content: null },
    },
    { name: 'a prompt that is not a string', status: 400, body: { model: 'wan2.6-t2v', input: { prompt: 1 } } },
    {
      name: 'a single link in place of a list',
      status: 400,
      body: { model: 'wan2.6-r2v', input: { prompt, reference_urls: url } },
    },
    { name: 'media without a type', status: 400, body: { model: 'wan2.7-i2v', input: { prompt, media: [{ url }] } } },
    {
      name: 'a string in place of a boolean',
      status: 400,
      body: { model: 'wan2.6-t2v', input: { prompt }, parameters: { audio: 'yes' } },
    },
    { name: 'a timeout that is too long', status: 400, body: { model: 'wan2.6-t2v', input: { prompt }, timeout: 301 } },
  ])('the contract and the gateway agree on an order: $name', async ({ status, body }) => {
    const { schema = {} } = contract.paths[path]?.['post']?.requestBody?.content['application/json'] ?? {}
    const isFit = z.fromJSONSchema(schema as z.core.JSONSchema.JSONSchema).safeParse(body).success
    const ordered = await gateway.post(path, body)
    expect([ordered.status, isFit]).toEqual([status, status === 202])
  })

  test('the contract names the default duration, resolution and aspect ratio', () => {
    const { schema } = contract.paths[path]?.['post']?.requestBody?.content['application/json'] ?? {}
    for (const [field, value] of Object.entries({ duration: '5', resolution: '`720p`', aspect_ratio: '`16:9`' })) {
      expect(schema?.properties?.[field]?.description).toContain(`Default ${value}`)
    }
  })
})

test.each(['/v1/models', '/v1/models/gpt-4o-mini'])(
  'the description of %s mentions its Anthropic form',
  async (path) => {
    const headers = { authorization: `Bearer ${gateway.key}`, 'anthropic-version': '2023-06-01' }
    expect(await (await fetch(gateway.url + path, { headers })).json()).not.toHaveProperty('object')
    const told = contract.paths[path.replace('gpt-4o-mini', '{id}')]?.['get']?.description
    expect(told).toContain('`anthropic-version`')
  },
)

test('the contract has the pages of the Anthropic form of /v1/models, and the refusal of one that cannot be', async () => {
  const told = contract.paths['/v1/models']?.['get']
  expect(told?.parameters?.map(({ name }) => name)).toEqual(['limit', 'after_id', 'before_id'])
  const headers = { authorization: `Bearer ${gateway.key}`, 'anthropic-version': '2023-06-01' }
  for (const [query, status] of [
    ['?limit=1', 200],
    ['?limit=1001', 400],
    ['?after_id=unknown', 400],
    ['?before_id=unknown', 400],
  ] as const) {
    expect((await fetch(`${gateway.url}/v1/models${query}`, { headers })).status).toBe(status)
    expect(told?.responses).toHaveProperty([status])
  }
})

test.each(['mp3', 'wav', 'pcm', 'opus', 'aac', 'flac'])(
  'audio as %s has a content type that the contract lists',
  async (format) => {
    const path = '/v1/audio/speech'
    const audio = await gateway.post(path, { model: 'tts-1', input: 'Hello!', response_format: format })
    expect(audio.status).toBe(200)
    await audio.bytes()
    const told = contract.paths[path]?.['post']?.responses['200']
    const types = told !== undefined && 'content' in told ? Object.keys(told.content) : []
    expect(types).toContain(audio.headers.get('content-type') ?? '')
  },
)
