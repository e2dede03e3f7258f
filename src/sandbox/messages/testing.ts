import { type SandboxModel, startSandbox } from '../sandbox.ts'
import { type BillLine, billOf, jsonOf } from '../testing.ts'

/**
 * Prices that are easy to compute by hand, in nano-dollars: 2 in, 1 for a cache read, 3 and 4 for cache writes, 10 out,
 * 1,000 a search.
 */
const prices = {
  input: 2_000n,
  cachedInput: 1_000n,
  cacheWrite5m: 3_000n,
  cacheWrite1h: 4_000n,
  output: 10_000n,
  webSearch: 1_000_000n,
}
const size = { contextTokens: 100_000, outputTokensMax: 8_192, prices }
const efforts = ['low', 'medium', 'high', 'max']

const models: readonly SandboxModel[] = [
  { vendor: 'anthropic', model: 'claude-test', reasoning: true, efforts, ...size },
  { vendor: 'anthropic', model: 'claude-plain', reasoning: false, efforts: [], asides: false, ...size },
  {
    vendor: 'anthropic',
    model: 'claude-new',
    reasoning: true,
    efforts,
    thinkingTypes: ['adaptive', 'disabled'],
    prefill: false,
    ...size,
  },
  {
    vendor: 'anthropic',
    model: 'claude-always',
    reasoning: true,
    efforts: [...efforts, 'xhigh'],
    thinkingTypes: ['adaptive'],
    sampling: false,
    forcedCalls: false,
    prefill: false,
    ...size,
  },
  {
    vendor: 'anthropic',
    model: 'claude-between',
    reasoning: true,
    efforts: [...efforts, 'xhigh'],
    thinkingTypes: ['adaptive', 'between_tools'],
    sampling: false,
    forcedCalls: false,
    prefill: false,
    ...size,
  },
]

type Sent = { ref?: string; path?: string; head?: Record<string, string>; signal?: AbortSignal }

/** A sandbox on a free port, and the few calls that the tests make to it. */
export function openMessages() {
  const sandbox = startSandbox({ port: 0, models: () => models })
  const base = sandbox.baseUrl('anthropic')

  function post(body: unknown, { ref, path = '/v1/messages', head = {}, signal }: Sent = {}): Promise<Response> {
    return fetch(base + path, {
      method: 'POST',
      headers: {
        'x-api-key': 'vendor-key',
        'anthropic-version': '2023-06-01',
        ...(ref === undefined ? {} : { 'x-client-request-id': ref }),
        ...head,
      },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal ? { signal } : {}),
    })
  }

  return {
    sandbox,
    base,
    post,
    /** Sends a user's text to a model; `more` holds further fields of the request. */
    say: (text: string, more: object = {}, sent: Sent = {}): Promise<Response> =>
      post({ model: 'claude-test', max_tokens: 1_000, messages: [{ role: 'user', content: text }], ...more }, sent),
    ...billOf<Line>(sandbox),
  }
}

type Line = BillLine & { units: Record<string, number> }

type Usage = {
  input_tokens: number
  cache_creation_input_tokens: number
  cache_read_input_tokens: number
  cache_creation: { ephemeral_5m_input_tokens: number; ephemeral_1h_input_tokens: number }
  output_tokens: number
  output_tokens_details: { thinking_tokens: number }
  server_tool_use: { web_search_requests: number } | null
}

export type Block = {
  type: string
  text: string
  thinking: string
  signature: string
  data: string
  id: string
  name: string
  input: Record<string, unknown>
  citations: Record<string, unknown>[] | null
  content: Record<string, unknown>[]
  tool_use_id: string
}

export type Message = {
  id: string
  type: string
  role: string
  model: string
  content: Block[]
  stop_reason: string
  stop_sequence: string | null
  stop_details: unknown
  usage: Usage
}

export function messageOf(response: Response | Promise<Response>): Promise<Message> {
  return jsonOf(response)
}

export type Event = {
  type: string
  index: number
  message: Message
  content_block: Block
  delta: {
    type: string
    text: string
    thinking: string
    signature: string
    partial_json: string
    citation: Record<string, unknown>
    stop_reason: string
    stop_sequence: string | null
  }
  usage: Usage
  error: { type: string; message: string }
}

/** The events of a stream, each with its name checked against its type. */
export async function eventsOf(response: Response | Promise<Response>): Promise<Event[]> {
  return readEvents(await (await response).text())
}

export function readEvents(text: string): Event[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((written) => {
      const [, name, data = ''] = /^event: (\w+)\ndata: (.*)$/s.exec(written) ?? []
      const event: Event = JSON.parse(data)
      if (event.type !== name) throw new Error(`${event.type} came as ${name}`)
      return event
    })
}

export function textOf(events: readonly Event[]): string {
  return events.map((event) => (event.delta?.type === 'text_delta' ? event.delta.text : '')).join('')
}
