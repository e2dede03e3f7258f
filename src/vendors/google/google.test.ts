import { afterAll, describe, expect, test } from 'bun:test'
import { EventSplitter } from '../../base/sse.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import type { AssistantBlock, Conversation, ReplyEvent, Turn } from '../../capabilities/conversation.ts'
import { type SandboxModel, startSandbox } from '../../sandbox/sandbox.ts'
import { plainContext } from '../testing.ts'
import type { CallContext, ChatAdapter } from '../vendor.ts'
import { google } from './google.ts'

const chat = adapter()

function adapter(): ChatAdapter {
  if (google.chat === undefined) throw new Error('no chat')
  return google.chat
}

const prices = { input: 2_000n, cachedInput: 1_000n, output: 10_000n }
const size = { vendor: 'google', reasoning: false, contextTokens: 100_000, outputTokensMax: 4_096, prices }
const flash = { ...size, model: 'gemini-2.5-flash', efforts: ['none', 'minimal', 'low', 'medium', 'high'] }
const pro = { ...size, model: 'gemini-3-pro-preview', efforts: ['low', 'high'] }
// The simulator is as strict as the vendor, so the adapter is tested against what it takes and answers.
const sandbox = startSandbox({ port: 0, models: () => [flash, pro] })
afterAll(() => sandbox.stop())

const plain: Conversation = { system: [], turns: [], tools: [], hostedTools: [], stop: [] }
const user = (text: string): Turn => ({ role: 'user', blocks: [{ kind: 'text', text }] })
// The only fields that the adapter reads.
const askFor = (stream: boolean) => ({ protocol: 'openai', stream }) as ChatAsk
const contextFor = ({ model, efforts }: SandboxModel): CallContext => ({
  ...plainContext,
  baseUrl: sandbox.baseUrl('google'),
  credential: 'vendor-key',
  upstreamModel: model,
  efforts,
  outputTokensMax: 4_096,
})

async function send(conversation: Partial<Conversation>, model: SandboxModel, stream: boolean): Promise<Uint8Array> {
  const { url, headers, body } = translated(stream, { ...plain, ...conversation }, contextFor(model))
  const response = await fetch(url, { method: 'POST', headers, body })
  const bytes = await response.bytes()
  if (response.status !== 200) throw new Error(`${response.status} ${Buffer.from(bytes).toString()}`)
  return bytes
}

async function whole(conversation: Partial<Conversation>, model: SandboxModel) {
  const { choices, usage } = chat.readAnswer(await send(conversation, model, false))
  return { blocks: choices[0]?.blocks ?? [], finish: choices[0]?.finish, usage }
}

async function events(conversation: Partial<Conversation>, model: SandboxModel): Promise<ReplyEvent[]> {
  const reader = chat.openReader()
  const splitter = new EventSplitter(1_000_000)
  const bytes = await send(conversation, model, true)
  return splitter.push(bytes).flatMap((event) => reader.read(event))
}

function translated(stream: boolean, conversation: Conversation, context: CallContext) {
  const { url, headers, body } = chat.translate(askFor(stream), conversation, context)
  if (typeof body !== 'string') throw new Error('no text')
  return { url, headers, body }
}

const textIn = (blocks: readonly AssistantBlock[]) =>
  blocks.map((block) => (block.kind === 'text' ? block.text : '')).join('')
const told = (stream: readonly ReplyEvent[]) =>
  stream.map((event) => (event.kind === 'text-delta' ? event.text : '')).join('')

function callOf(stream: boolean, upstreamModel = 'gemini-2.5-flash') {
  return translated(stream, { ...plain, turns: [user('Hi')] }, { ...contextFor(flash), upstreamModel })
}

test("a call goes to the model's own address, with the key only in a header", () => {
  const call = callOf(false)
  expect(call.url).toBe(`${sandbox.baseUrl('google')}/v1beta/models/gemini-2.5-flash:generateContent`)
  expect(call.headers).toEqual({
    'x-goog-api-key': 'vendor-key',
    'content-type': 'application/json',
    'x-client-request-id': 'att_1',
  })
  expect(`${call.url}${call.body}`).not.toContain('vendor-key')
  expect(callOf(true).url).toEndWith('/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse')
  expect(callOf(false, 'tunedModels/mine').url).toEndWith('/v1beta/tunedModels/mine:generateContent')
})

const schema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  properties: { city: { $ref: '#/$defs/city' }, unit: { const: 'C' } },
  required: ['city', 'unit'],
  additionalProperties: false,
  $defs: { city: { type: 'string' } },
}
const tools = [
  { name: 'get_weather', description: 'd', schema },
  { name: 'look_up_stocks', schema: { type: 'object', properties: {} } },
]

describe.each([flash, pro])('the adapter with $model', (model) => {
  test('a stream has the text and usage of the plain answer', async () => {
    const turns = [user('hello'), { role: 'assistant', blocks: [{ kind: 'text', text: 'Hi.' }] } as Turn, user('again')]
    const conversation: Partial<Conversation> = {
      system: [{ kind: 'text', text: 'Be brief.' }],
      turns,
      outputTokensMax: 5_000,
      temperature: 1,
      stop: ['never'],
      seed: 2 ** 40,
    }
    const { blocks, finish, usage } = await whole(conversation, model)
    const stream = await events(conversation, model)
    expect(finish).toBe('stop')
    expect(textIn(blocks).length).toBeGreaterThan(10)
    expect(told(stream)).toBe(textIn(blocks))
    expect(stream.at(-1)).toEqual({ kind: 'choice-finish', choice: 0, finish: 'stop' })
    const counted = stream.findLast((event) => event.kind === 'usage-count')?.usage
    expect(counted?.output).toBe(usage?.output)
    expect((counted?.input ?? 0) + (counted?.cachedInput ?? 0)).toBe((usage?.input ?? 0) + (usage?.cachedInput ?? 0))
  })

  test('thinking is shown on request', async () => {
    const thinking = { effort: 'high', isShown: true } as const
    const { blocks, usage } = await whole({ turns: [user('hello')], thinking }, model)
    expect(blocks.map(({ kind }) => kind)).toEqual(['thinking', 'text'])
    expect(usage?.reasoning).toBe(128)
  })

  test.each(['whole', 'stream'])('parallel calls are made and their results are accepted: %s', async (form) => {
    const question = user('weather and stocks')
    const calls =
      form === 'whole'
        ? (await whole({ turns: [question], tools }, model)).blocks
        : callsIn(await events({ turns: [question], tools }, model))
    expect(calls.map((block) => (block.kind === 'tool-call' ? block.name : ''))).toEqual(tools.map(({ name }) => name))
    const results = calls.flatMap((block) =>
      block.kind === 'tool-call'
        ? [
            {
              kind: 'tool-result',
              callId: block.id,
              blocks: [{ kind: 'text', text: '{"t":20}' }],
              isError: false,
            } as const,
          ]
        : [],
    )
    const turns: Turn[] = [
      question,
      { role: 'assistant', blocks: calls },
      { role: 'user', blocks: results.toReversed() },
      { role: 'assistant', blocks: [{ kind: 'text', text: 'It is 20.' }] },
      user('thanks'),
    ]
    for (const upTo of [3, 5]) {
      expect((await whole({ turns: turns.slice(0, upTo), tools }, model)).finish).toBe('stop')
    }
  })

  test('calls made by another model are accepted', async () => {
    const call = { kind: 'tool-call', id: 'toolu_1', name: 'get_weather', argumentsText: '{"city":"Oslo"}' } as const
    const result = { kind: 'tool-result', callId: 'toolu_1', blocks: [], isError: true } as const
    const thinking = { kind: 'thinking', text: 'hm', signature: 'ErUBCkYIBx' } as const
    const turns: Turn[] = [
      user('weather'),
      { role: 'assistant', blocks: [thinking, call] },
      { role: 'user', blocks: [result] },
    ]
    expect((await whole({ turns, tools }, model)).finish).toBe('stop')
  })

  test.each(['required', 'none', { name: 'look_up_stocks' }] as const)(
    'the tool choice %j is obeyed',
    async (toolChoice) => {
      const { finish } = await whole({ turns: [user('weather')], tools, toolChoice }, model)
      expect(finish).toBe(toolChoice === 'none' ? 'stop' : 'tool-calls')
    },
  )

  test('a schema yields an instance of it', async () => {
    const { blocks } = await whole({ turns: [user('hello')], format: { kind: 'schema', schema } }, model)
    expect(JSON.parse(textIn(blocks))).toEqual({ city: expect.any(String), unit: 'C' })
  })

  test('a blocked, cut-off or broken answer does not look complete', async () => {
    const kindsOf = async (text: string) => (await events({ turns: [user(text)] }, model)).map(({ kind }) => kind)
    expect(await whole({ turns: [user('sandbox:blocked')] }, model)).toMatchObject({ blocks: [], finish: 'refusal' })
    expect(await kindsOf('sandbox:eof=4')).not.toContain('choice-finish')
    expect(await kindsOf('sandbox:midstream-error')).toContain('failure')
    expect(await kindsOf('sandbox:malformed')).toContain('failure')
    expect(await kindsOf('sandbox:crlf')).toContain('choice-finish')
    expect(await kindsOf('sandbox:nousage')).not.toContain('usage-count')
  })
})

function callsIn(stream: readonly ReplyEvent[]): AssistantBlock[] {
  return stream.flatMap((event) => {
    if (event.kind !== 'tool-call-start') return []
    const { id, name, signature, call } = event
    const delta = stream.find((other) => other.kind === 'tool-call-delta' && other.call === call)
    const argumentsText = delta?.kind === 'tool-call-delta' ? delta.text : ''
    return [{ kind: 'tool-call' as const, id, name, argumentsText, ...(signature !== undefined && { signature }) }]
  })
}
