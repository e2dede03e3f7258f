import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { formatDollars, nano, zeroNano } from '../../src/base/money.ts'
import { thrownBy } from '../support/clients.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import {
  connect,
  eras,
  lastText,
  requestIdOf,
  shown,
  type Block,
  type Result,
  type Told,
  type ToolClient,
} from '../support/mcp.ts'
import { recordOf } from '../support/records.ts'

let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway({ mode: 'leased' })
})
afterAll(() => gateway.close())

const chatModel = 'gpt-4o-mini'
const videoMsMax = 120_000
const ofType = ({ content }: Result, type: string): Block[] => content.filter((block) => block.type === type)

type Image = { url: string; media_type: string; width: number; height: number }
type Images = { model: string; images: Image[]; cost: string }
type Video = { id: string; model: string; status: string; content?: { video_url: string } }

describe.each(eras)('the tool server, with a %s client', (era) => {
  let client: ToolClient

  beforeAll(async () => {
    client = await connect(gateway, era)
  })
  afterEach(() => gateway.assertBooks())
  afterAll(() => client.close())

  test("the server speaks the client's version and announces only what it supports", () => {
    expect(client.version).toBe(era === 'modern' ? '2026-07-28' : '2025-11-25')
    expect(client.capabilities).toEqual({ tools: {}, resources: {}, prompts: {}, completions: {} })
    expect(client.instructions).toContain('list_models')
  })

  test('every capability is a tool with schemas, examples and hints', async () => {
    const tools = await client.tools()
    expect(tools.map(({ name }) => name)).toEqual([
      'list_models',
      'get_model',
      'chat',
      'generate_image',
      'edit_image',
      'generate_video',
      'get_video',
      'list_videos',
      'cancel_video',
      'create_embeddings',
      'speak',
      'get_usage',
    ])
    for (const tool of tools) {
      expect(tool).toMatchObject({
        title: expect.any(String),
        description: expect.any(String),
        inputSchema: { type: 'object' },
        outputSchema: { type: 'object' },
        annotations: { readOnlyHint: expect.any(Boolean), destructiveHint: expect.any(Boolean) },
      })
    }
    const spending = tools.filter((tool) => !(tool['annotations'] as { readOnlyHint: boolean }).readOnlyHint)
    expect(spending.map(({ name }) => name)).not.toContain('get_usage')
    expect(JSON.stringify(tools.find(({ name }) => name === 'chat'))).toContain('"examples":["gpt-4o-mini"]')
  })

  test('chat returns the answer as text and as an object, and charges its cost', async () => {
    const before = await gateway.balance()
    const result = await client.call('chat', { model: chatModel, prompt: 'Hello there!', system: 'Be brief.' })
    const { model, choices, cost, usage } = shown<{
      model: string
      choices: { text: string; finish_reason: string }[]
      usage: { prompt_tokens: number }
      cost: string
    }>(result)
    expect(model).toBe(chatModel)
    expect(choices).toHaveLength(1)
    expect(choices[0]?.finish_reason).toBe('stop')
    expect(result.content[0]).toEqual({ type: 'text', text: choices[0]?.text ?? '' })
    const record = await recordOf(gateway, requestIdOf(result))
    expect(record).toMatchObject({ status: 200, basis: 'vendor', model: chatModel, capability: 'chat' })
    expect(usage.prompt_tokens).toBe((record.usage as { input: number }).input)
    const after = await gateway.balance()
    expect(formatDollars(nano(before.posted - after.posted))).toBe(cost)
  })

  test('a long chat answer streams as progress, and its pieces add up to the answer', async () => {
    const told: Told[] = []
    const result = await client.call(
      'chat',
      { model: chatModel, prompt: 'Tell me more. sandbox:tokens=60 sandbox:pace=15' },
      { onprogress: (one) => told.push(one) },
    )
    const { choices } = shown<{ choices: { text: string }[] }>(result)
    expect(told.length).toBeGreaterThan(2)
    expect(told.map(({ message }) => message ?? '').join('')).toBe(choices[0]?.text ?? '')
    const steps = told.map(({ progress }) => progress)
    expect(steps).toEqual([...new Set(steps)].toSorted((a, b) => a - b))
    expect(await recordOf(gateway, requestIdOf(result))).toMatchObject({ streamed: true, basis: 'vendor' })
  })

  test('chat takes tools, several choices, and a conversation with an image', async () => {
    const name = 'weather'
    const asked = { model: chatModel, prompt: 'What is the weather?' }
    const legacy = { functions: [{ name, parameters: { type: 'object', properties: {} } }] }
    const called = { name, arguments: expect.any(String) }
    for (const [offered, told] of [
      [{ tools: [{ type: 'function', function: legacy.functions[0] }] }, { tool_calls: [{ function: called }] }],
      [{ tools: [{ type: 'custom', custom: { name } }] }, { tool_calls: [{ custom: { name } }] }],
      [{ model: 'claude-sonnet-4-5', ...legacy }, { function_call: called }],
    ]) {
      for (const options of [undefined, { onprogress() {} }]) {
        const { choices } = shown<{ choices: object[] }>(await client.call('chat', { ...asked, ...offered }, options))
        expect(choices[0]).toMatchObject({ finish_reason: expect.stringMatching(/_calls?$/), ...told })
      }
    }
    // The arguments do not decide whether the answer streams.
    const streaming = { model: chatModel, prompt: 'Hi', stream: true, stream_options: { include_usage: true } }
    expect(shown<{ choices: object[] }>(await client.call('chat', streaming)).choices).toHaveLength(1)
    const several = await client.call('chat', { model: chatModel, prompt: 'Hi', n: 2 }, { onprogress() {} })
    expect(shown<{ choices: object[] }>(several).choices).toHaveLength(2)
    const seen = await client.call('chat', {
      model: chatModel,
      messages: [
        {
          role: 'user',
          content: [
            { type: 'text', text: 'Look!' },
            { type: 'image_url', image_url: { url: 'https://example.com/a.png' } },
          ],
        },
        { role: 'assistant', content: 'A river.' },
      ],
      prompt: 'And now?',
    })
    expect(shown<{ choices: object[] }>(seen).choices).toHaveLength(1)
  })

  test('chat returns the sources of a web search, and logprobs', async () => {
    const asked = { model: 'claude-sonnet-4-5', prompt: 'Search the web: rivers', web_search_options: {} }
    for (const options of [{}, { onprogress() {} }]) {
      const { choices } = shown<{ choices: object[] }>(await client.call('chat', asked, options))
      const source = { type: 'url_citation', url_citation: { url: expect.stringMatching(/^https:/) } }
      expect(choices[0]).toMatchObject({ annotations: [source, source] })
    }
    const likely = await client.call('chat', { model: chatModel, prompt: 'Hi', logprobs: true }, { onprogress() {} })
    const { choices } = shown<{ choices: object[] }>(likely)
    expect(choices[0]).toMatchObject({ logprobs: { content: expect.any(Array) } })
    expect(choices[0]).not.toHaveProperty('annotations')
  })

  test('generated images are shown and linked', async () => {
    const result = await client.call('generate_image', { model: 'gpt-image-1', prompt: 'A cat', size: '1024x1536' })
    const { images, cost } = shown<Images>(result)
    expect(images).toEqual([{ url: expect.any(String), media_type: 'image/png', width: 1024, height: 1536 }])
    const [block] = ofType(result, 'image')
    const [link] = ofType(result, 'resource_link')
    expect(block?.mimeType).toBe('image/png')
    const file = Buffer.from(await (await fetch(link?.uri ?? '')).arrayBuffer())
    expect(file.toString('base64')).toBe(block?.data ?? '')
    const record = await recordOf(gateway, requestIdOf(result))
    expect(formatDollars(record.cost)).toBe(cost)

    // From a vendor that gives links, the bytes are fetched only if the image is to be shown.
    const linked = await client.call('generate_image', { model: 'qwen-image-2.0', prompt: 'A dog', show: 'link' })
    expect(ofType(linked, 'image')).toEqual([])
    const [onlyLink] = ofType(linked, 'resource_link')
    expect(shown<Images>(linked).images).toEqual([{ url: onlyLink?.uri ?? 'none' } as Image])
    const seen = await client.call('generate_image', { model: 'qwen-image-2.0', prompt: 'A dog' })
    expect(ofType(seen, 'image')).toHaveLength(1)
  })

  test('edit_image takes an image that another tool made and one given as data', async () => {
    const made = shown<Images>(await client.call('generate_image', { model: 'gpt-image-1', prompt: 'A cat' }))
    const edited = await client.call('edit_image', {
      model: 'gpt-image-1',
      prompt: 'Make it night.',
      images: [made.images[0]?.url],
    })
    expect(shown<Images>(edited).images).toHaveLength(1)
    const [block] = ofType(edited, 'image')
    const again = await client.call('edit_image', {
      model: 'gpt-image-1',
      prompt: 'Make it day.',
      images: [`data:image/png;base64,${block?.data}`, made.images[0]?.url],
      n: 2,
    })
    expect(shown<Images>(again).images).toHaveLength(2)
    expect(await recordOf(gateway, requestIdOf(again))).toMatchObject({ capability: 'edits', status: 200 })
  })

  const edit = async (source: string) => {
    const result = await client.call('edit_image', { model: 'gpt-image-1', prompt: 'x', images: [source] })
    expect(result.isError).toBe(true)
    return (lastText(result) as { error: { code: string; param: string | null } }).error.code
  }

  test('edit_image refuses files that are no images and links to internal addresses', async () => {
    expect(await edit(`data:image/png;base64,${Buffer.from('%PDF-1.4').toString('base64')}`)).toBe(
      'invalid_image_format',
    )
    expect(await edit('https://127.0.0.1/a.png')).toBe('invalid_url')
    expect(await edit('file:///etc/passwd')).toBe('invalid_value')
    expect(await edit(`${gateway.url}/artifacts/art_1.png`)).toBe('invalid_link')
  })

  test(
    'generate_video returns a task at once, and get_video its result',
    async () => {
      const given = { model: 'wan2.6-t2v', prompt: 'Waves', duration: 5, resolution: '720p' }
      const made = shown<Video>(await client.call('generate_video', given))
      expect(made).toMatchObject({ model: 'wan2.6-t2v', status: 'submitted' })
      let seen: Result | undefined
      await until(async () => {
        seen = await client.call('get_video', { id: made.id })
        return shown<Video>(seen).status === 'succeeded'
      })
      const url = shown<Video>(seen as Result).content?.video_url ?? ''
      expect(ofType(seen as Result, 'resource_link')).toEqual([
        { type: 'resource_link', uri: url, name: `${made.id}.mp4`, mimeType: 'video/mp4' } as never,
      ])
      expect((await fetch(url)).status).toBe(200)
      const { data } = shown<{ data: Video[] }>(await client.call('list_videos', { limit: 100, status: 'succeeded' }))
      expect(data.map(({ id }) => id)).toContain(made.id)
      const late = await client.call('cancel_video', { id: made.id })
      expect(late.isError).toBe(true)
      expect(lastText(late)).toMatchObject({ error: { code: 'not_cancellable' } })
    },
    videoMsMax,
  )

  test(
    'generate_video with wait reports progress and returns the task at its end or at the timeout',
    async () => {
      const told: Told[] = []
      const result = await client.call(
        'generate_video',
        { model: 'wan2.6-t2v', prompt: 'Waves', duration: 5, wait: true },
        { onprogress: (one) => told.push(one) },
      )
      expect(shown<Video>(result)).toMatchObject({ status: 'succeeded' })
      expect(ofType(result, 'resource_link')).toHaveLength(1)
      expect(told[0]?.message).toContain('submitted')
      const failed = await client.call('generate_video', { model: 'wan2.6-t2v', prompt: 'sandbox:fail=x', wait: true })
      expect(shown<Video>(failed)).toMatchObject({ status: 'failed', error: { code: expect.any(String) } })
      const early = await client.call('generate_video', {
        model: 'wan2.6-t2v',
        prompt: 'sandbox:queued=600000',
        wait: true,
        timeout: 1,
      })
      const { id, status } = shown<Video>(early)
      expect(status).toBe('submitted')
      expect(shown<Video>(await client.call('cancel_video', { id }))).toMatchObject({ id, status: 'cancelled' })
    },
    videoMsMax,
  )

  test('embeddings come as numbers or as base64', async () => {
    const input = ['a river', 'a stream', 'a tax']
    const result = await client.call('create_embeddings', { model: 'text-embedding-3-small', input, dimensions: 256 })
    const { data, cost } = shown<{ data: { index: number; embedding: number[] }[]; cost: string }>(result)
    expect(data.map(({ index, embedding }) => [index, embedding.length])).toEqual([
      [0, 256],
      [1, 256],
      [2, 256],
    ])
    expect(formatDollars((await recordOf(gateway, requestIdOf(result))).cost)).toBe(cost)
    const short = await client.call('create_embeddings', {
      model: 'text-embedding-3-small',
      input: 'a river',
      encoding_format: 'base64',
    })
    expect(shown<{ data: { embedding: string }[] }>(short).data[0]?.embedding).toBeString()
  })

  test('speech comes as audio and as a linked file', async () => {
    const result = await client.call('speak', { model: 'gpt-4o-mini-tts', input: 'Good morning.' })
    const { media_type: type, bytes, url } = shown<{ media_type: string; bytes: number; url: string }>(result)
    const [audio] = ofType(result, 'audio')
    expect(type).toBe('audio/mpeg')
    expect(audio?.mimeType).toBe(type)
    expect(Buffer.from(audio?.data ?? '', 'base64')).toHaveLength(bytes)
    expect((await (await fetch(url)).arrayBuffer()).byteLength).toBe(bytes)
    expect(await recordOf(gateway, requestIdOf(result))).toMatchObject({ capability: 'speech', status: 200 })
  })

  test('usage comes as sums, by request, and as the balance', async () => {
    const sums = shown<{ data: { model: string; requests: number }[] }>(
      await client.call('get_usage', { group_by: 'model', own: true }),
    )
    expect(sums.data.map(({ model }) => model)).toContain(chatModel)
    const requests = await client.call('get_usage', { report: 'requests', limit: 3 })
    expect(shown<{ data: object[] }>(requests).data).toHaveLength(3)
    expect(shown<{ currency: string }>(await client.call('get_usage', { report: 'balance' })).currency).toBe('USD')
  })

  test('a refused call gives the error of the HTTP path and costs nothing', async () => {
    const before = await gateway.balance()
    const refused = async (name: string, given: Record<string, unknown>) => {
      const result = await client.call(name, given)
      expect(result.isError).toBe(true)
      expect(result.structuredContent).toBeUndefined()
      expect(requestIdOf(result)).toStartWith('req_')
      return { status: result._meta?.['turnpike/status'], ...(lastText(result) as { error: { code: string } }).error }
    }
    const asked = { model: 'no-such-model', messages: [{ role: 'user', content: 'Hi' }] }
    const rest = (await (await gateway.post('/v1/chat/completions', asked)).json()) as { error: object }
    expect(await refused('chat', { model: 'no-such-model', prompt: 'Hi' })).toEqual({
      status: 404,
      ...rest.error,
    } as never)
    expect(await refused('chat', { prompt: 'Hi' })).toMatchObject({ status: 400, code: 'missing_required_parameter' })
    expect(await refused('chat', { model: chatModel })).toMatchObject({ status: 400, param: 'prompt' })
    expect(await refused('chat', { model: chatModel, prompt: 'Hi', temperature: 9 })).toMatchObject({
      param: 'temperature',
    })
    expect(await refused('chat', { model: 'gpt-image-1', prompt: 'Hi' })).toMatchObject({
      code: 'endpoint_model_mismatch',
    })
    expect(await refused('chat', { model: chatModel, prompt: 'Hi sandbox:status=500' })).toMatchObject({ status: 502 })
    expect(await refused('speak', { model: 'gpt-4o-mini-tts', input: 'Hi', voice: 'nobody' })).toMatchObject({
      status: 400,
    })
    for (const id of ['vid_none', '%', '\ud800']) {
      expect(await refused('get_video', { id })).toMatchObject({ status: 404, code: 'task_not_found' })
      expect(await refused('cancel_video', { id })).toMatchObject({ status: 404, code: 'task_not_found' })
    }
    expect(await refused('get_usage', { shape: 'round' })).toMatchObject({ code: 'unknown_parameter', param: 'shape' })
    expect(await gateway.balance()).toEqual(before)
    expect((await thrownBy(client.call('no_such_tool'), Error)).message).toContain('no_such_tool')
  })

  test('a chat that breaks off is an error, with the partial text if it streamed', async () => {
    const ask = { model: chatModel, prompt: 'Hello! sandbox:tokens=40 sandbox:cut=12' }
    const whole = await client.call('chat', ask)
    expect([whole.isError, whole.content.length]).toEqual([true, 1])
    expect((await recordOf(gateway, requestIdOf(whole))).cost).toBe(zeroNano)
    const result = await client.call('chat', ask, { onprogress() {} })
    expect(result.isError).toBe(true)
    expect(result.content).toHaveLength(2)
    expect(lastText(result)).toMatchObject({ error: { type: 'upstream_error' } })
    expect((await recordOf(gateway, requestIdOf(result))).cost).toBeGreaterThan(0n)
  })

  test('a cancelled chat ends and is charged for what was sent', async () => {
    const { key, id } = await gateway.account({ dollars: '5' })
    const own = await connect(gateway, era, { key })
    const controller = new AbortController()
    const told: Told[] = []
    const call = own.call(
      'chat',
      { model: chatModel, prompt: 'Hello! sandbox:endless sandbox:pace=5' },
      {
        signal: controller.signal,
        onprogress(one) {
          told.push(one)
          controller.abort()
        },
      },
    )
    await thrownBy(call, Error)
    expect(told.length).toBeGreaterThan(0)
    await until(() => gateway.openHolds() === 0)
    const { posted } = await gateway.balance(id)
    expect(posted).toBeLessThan(5_000_000_000n)
    expect(posted).toBeGreaterThan(4_900_000_000n)
    await own.close()
  })

  test('a call cancelled before its answer begins costs nothing and releases its hold', async () => {
    const { key, id } = await gateway.account({ dollars: '5' })
    const own = await connect(gateway, era, { key })
    for (const [name, given] of [
      ['chat', { model: chatModel, prompt: 'Hello! sandbox:delay=60000' }],
      ['generate_image', { model: 'gpt-image-1', prompt: 'A cat sandbox:delay=60000' }],
    ] as const) {
      const controller = new AbortController()
      const call = own.call(name, given, { signal: controller.signal })
      await until(() => gateway.openHolds() === 1)
      controller.abort()
      await thrownBy(call, Error)
      await until(() => gateway.openHolds() === 0)
    }
    expect((await gateway.balance(id)).posted).toBe(5_000_000_000n as never)
    await own.close()
  })
})
