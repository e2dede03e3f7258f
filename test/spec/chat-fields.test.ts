import { describe, expect, test } from 'bun:test'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { gatewayForTests } from '../support/gateway.ts'
import { refusedForFree } from '../support/refused.ts'

const gateway = gatewayForTests()

const common = 'gpt-4o-mini'
const claude = 'claude-sonnet-4-5'
const gemini = 'gemini-2.5-flash'
const messages = [{ role: 'user', content: 'Hello!' }]

type Answer = {
  choices?: { message: { content: string | null; tool_calls?: { function?: { name: string } }[] } }[]
  error?: { message: string; param: string | null; code: string }
}

async function chat(model: string, fields: object): Promise<Answer & { status: number }> {
  const response = await gateway.post('/v1/chat/completions', { model, messages, ...fields })
  return { ...((await response.json()) as Answer), status: response.status }
}

async function lastSent(): Promise<Record<string, unknown>> {
  return (await gateway.calls()).at(-1)?.body ?? {}
}

describe('model', () => {
  test.each([
    ['openai/gpt-4o-mini', '`gpt-4o-mini` or `openai-gpt-4o-mini`'],
    ['GPT-4o-mini', '`gpt-4o-mini`'],
    ['gpt4o-mini', '`gpt-4o-mini`'],
  ])('the unknown model %s is a 404 that suggests what may be meant', async (id, meant) => {
    const { status, error } = await refusedForFree(gateway, () => chat(id, {}))
    expect([status, error?.code]).toEqual([404, 'model_not_found'])
    expect(error?.message).toEndWith(`Did you mean ${meant}?`)
  })

  test('a model out of the key’s scope is not suggested', async () => {
    const { key } = await gateway.account({ models: ['claude-*'] })
    const send = (model: string) =>
      gateway.post('/v1/chat/completions', { model, messages }, { authorization: `Bearer ${key}` })
    const known = await (await send('openai/gpt-4o-mini')).text()
    const unknown = await (await send('openai/gpt-4o-mono')).text()
    expect(known.replace('mini', 'mono')).toBe(unknown)
    expect(known).not.toContain('mean')
    expect(await (await send('gpt4o-mini')).text()).not.toContain('mean')
    expect(await (await send('claude-sonet-4-5')).text()).toContain('Did you mean `claude-sonnet-4-5`?')
  })

  test('a model of another capability is refused with the path that serves it', async () => {
    const form = new FormData()
    for (const [name, value] of Object.entries({ model: 'qwen-image-edit', prompt: 'Make it night.' })) {
      form.append(name, value)
    }
    form.append('image', new File([drawImage({ width: 64, height: 64, format: 'png', seed: 1 })], 'a.png'))
    const headers = { authorization: `Bearer ${gateway.key}` }
    const response = await fetch(`${gateway.url}/v1/images/edits`, { method: 'POST', headers, body: form })
    const { error } = (await response.json()) as Answer
    expect(error).toMatchObject({ code: 'endpoint_model_mismatch', param: 'model' })
    expect(error?.message).toBe(
      'The model `qwen-image-edit` does not do edits; it is for images (`/v1/images/generations`).',
    )
  })
})

describe('stop', () => {
  test.each([[[' ']], [['  \n']]])('%j is refused only where the vendor takes no blank sequence', async (stop) => {
    const { status, error } = await refusedForFree(gateway, () => chat(claude, { stop }))
    expect([status, error?.param]).toEqual([400, 'stop'])
    expect((await chat(common, { stop })).status).toBe(200)
  })
})

describe('vendors that refuse fields they do not know', () => {
  const strict = [
    'accounts-fireworks-models-gpt-oss-120b',
    'llama-3.3-70b',
    'llama-3.3-70b-versatile',
    'meta-llama-3.3-70b-instruct',
    'mistral-small-latest',
  ]

  test.each(strict)('%s answers a request with every label and hint of the protocol', async (model) => {
    const labels = { user: 'u', safety_identifier: 's', store: false, metadata: { trace: 'a' }, prompt_cache_key: 'k' }
    const hints = {
      prompt_cache_retention: '24h',
      service_tier: 'default',
      verbosity: 'low',
      seed: 7,
      logit_bias: null,
    }
    expect(await chat(model, { ...labels, ...hints })).toMatchObject({ status: 200 })
  })

  test('grok-4.5 answers a request with penalties and stop sequences', async () => {
    expect(await chat('grok-4.5', { presence_penalty: 0, frequency_penalty: 1, stop: ['.'] })).toMatchObject({
      status: 200,
    })
  })

  test.each(strict)('%s continues the answer of another vendor’s model, sent back as it came', async (model) => {
    const said = (await chat(claude, {})).choices?.[0]?.message
    expect(said).toHaveProperty('refusal', null)
    const history = [...messages, { ...said, annotations: [], audio: null }, ...messages]
    expect(await chat(model, { messages: history })).toMatchObject({ status: 200 })
  })
})

describe('a model that its vendor only streams', () => {
  const model = 'qwq-plus'

  test('answers as a whole, charged by the vendor’s count', async () => {
    const { status, choices } = await chat(model, {})
    expect([status, typeof choices?.[0]?.message.content]).toEqual([200, 'string'])
    expect(await lastSent()).toMatchObject({ stream: true, stream_options: { include_usage: true } })
    const said = await gateway.post('/v1/messages', { model, max_tokens: 500, messages })
    expect(said.status).toBe(200)
  })

  test('calls tools, gives several choices and streams', async () => {
    const tools = [{ type: 'function', function: { name: 'weather' } }]
    const { choices } = await chat(model, { tools, tool_choice: 'required', n: 2 })
    expect(choices?.map(({ message }) => message.tool_calls?.[0]?.function?.name)).toEqual(['weather', 'weather'])
    const response = await gateway.post('/v1/chat/completions', { model, messages, stream: true })
    expect(await response.text()).toEndWith('data: [DONE]\n\n')
  })
})

describe('tool_choice', () => {
  const tools = ['weather', 'clock'].map((name) => ({ type: 'function', function: { name } }))

  test.each([common, claude, gemini])('tool_choice may be the name of a tool: %s', async (model) => {
    const { status, choices } = await chat(model, { tools, tool_choice: 'clock' })
    expect([status, choices?.[0]?.message.tool_calls?.[0]?.function?.name]).toEqual([200, 'clock'])
  })

  test('a tool name is sent to a vendor of the protocol as the equivalent object', async () => {
    await chat(common, { tools, tool_choice: 'clock' })
    expect((await lastSent())['tool_choice']).toEqual({ type: 'function', function: { name: 'clock' } })
    const custom = [...tools, { type: 'custom', custom: { name: 'shell' } }]
    await chat(common, { tools: custom, tool_choice: 'shell' })
    expect((await lastSent())['tool_choice']).toEqual({ type: 'custom', custom: { name: 'shell' } })
  })

  test('a keyword of the protocol takes precedence over a tool of that name', async () => {
    await chat(common, { tools: [{ type: 'function', function: { name: 'none' } }], tool_choice: 'none' })
    expect((await lastSent())['tool_choice']).toBe('none')
  })

  test.each([common, claude])('an unknown tool name is refused with the expected values: %s', async (model) => {
    const { status, error } = await refusedForFree(gateway, () => chat(model, { tools, tool_choice: 'cloc' }))
    expect([status, error?.param]).toEqual([400, 'tool_choice'])
    expect(error?.message).toBe(
      "Invalid 'tool_choice': expected 'none', 'auto', 'required' or the name of one of 'tools', received 'cloc'.",
    )
    const long = await chat(model, { tools, tool_choice: 'x'.repeat(3_000) })
    expect(long.error?.message).toMatch(/received 'x{99}…'\.$/)
  })
})

describe('metadata', () => {
  const metadata = { tags: ['a'], trace: 1, deep: { at: null } }

  test('metadata is sent unchanged to a vendor of the protocol', async () => {
    expect((await chat('deepseek-chat', { metadata })).status).toBe(200)
    expect((await lastSent())['metadata']).toEqual(metadata)
  })

  test('metadata is dropped for a vendor that has no such field', async () => {
    expect((await chat(claude, { metadata })).status).toBe(200)
    expect(await lastSent()).not.toHaveProperty('metadata')
  })

  test('metadata reaches OpenAI only with an answer that is stored, because OpenAI refuses it otherwise', async () => {
    for (const fields of [{ metadata }, { metadata, store: false }]) {
      expect((await chat(common, fields)).status).toBe(200)
      expect(await lastSent()).not.toHaveProperty('metadata')
    }
    const labels = { trace: 'a' }
    expect((await chat(common, { metadata: labels, store: true })).status).toBe(200)
    expect((await lastSent())['metadata']).toEqual(labels)
    const refused = await chat(common, { metadata, store: true })
    expect(refused).toMatchObject({ status: 400, error: { param: 'metadata.tags', code: 'invalid_type' } })
  })
})

describe('response_format', () => {
  test.each([common, claude, gemini])('json_object yields a JSON object: %s', async (model) => {
    // OpenAI requires the word JSON in the prompt.
    const asked = [{ role: 'user', content: 'Describe a fox as JSON.' }]
    const { status, choices } = await chat(model, { messages: asked, response_format: { type: 'json_object' } })
    expect(status).toBe(200)
    expect(JSON.parse(choices?.[0]?.message.content ?? '')).toEqual(expect.any(Object))
  })
})
