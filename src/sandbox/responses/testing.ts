import { type SandboxModel, startSandbox } from '../sandbox.ts'
import { type BillLine, billOf, jsonOf } from '../testing.ts'

/**
 * Prices that are easy to compute by hand, in nano-dollars: 2 in, 1 for a cache read, 10 out, 1,000 a search;
 * gpt-5.6-sol charges 3 for a cache write.
 */
const prices = { input: 2_000n, cachedInput: 1_000n, output: 10_000n, webSearch: 1_000_000n }
const size = { contextTokens: 100_000, outputTokensMax: 4_096, prices }
const efforts = ['none', 'low', 'medium', 'high', 'xhigh']

const models: readonly SandboxModel[] = [
  { vendor: 'openai', model: 'gpt-4o', reasoning: false, efforts: [], ...size },
  { vendor: 'openai', model: 'gpt-5', reasoning: true, efforts: ['minimal', 'low', 'medium', 'high'], ...size },
  { vendor: 'openai', model: 'gpt-5-mini', reasoning: true, efforts: ['minimal', 'low', 'medium', 'high'], ...size },
  { vendor: 'openai', model: 'gpt-5.4', reasoning: true, efforts, ...size },
  {
    vendor: 'openai',
    model: 'gpt-5.6-sol',
    reasoning: true,
    efforts: [...efforts, 'max'],
    ...size,
    prices: { ...prices, cacheWrite5m: 3_000n },
  },
  { vendor: 'openai', model: 'painter', capabilities: ['images'], reasoning: false, efforts: [], ...size },
  { vendor: 'azure', model: 'gpt-5', reasoning: true, efforts: ['minimal', 'low', 'medium', 'high'], ...size },
]

type Sent = { ref?: string; vendor?: string; path?: string; signal?: AbortSignal }

/** A sandbox on a free port, and the few calls that the tests make to it. */
export function openResponses() {
  const sandbox = startSandbox({ port: 0, models: () => models })

  function post(body: unknown, { ref, vendor = 'openai', path = '/responses', signal }: Sent = {}): Promise<Response> {
    return fetch(sandbox.baseUrl(vendor) + path, {
      method: 'POST',
      headers: { authorization: 'Bearer vendor-key', ...(ref === undefined ? {} : { 'x-client-request-id': ref }) },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal ? { signal } : {}),
    })
  }

  return {
    sandbox,
    post,
    /** Sends a text or items to a model; `more` holds further fields of the request. */
    say: (input: unknown, more: object = {}, sent: Sent = {}): Promise<Response> =>
      post({ model: 'gpt-4o', input, ...more }, sent),
    ...billOf<Line>(sandbox),
  }
}

type Line = BillLine & { units: Record<string, number> }

type Part = { type: string; text: string; refusal: string; annotations: unknown[]; logprobs: unknown[] }

export type Item = {
  type: string
  id: string
  status?: string
  role: string
  content: Part[]
  summary: { type: string; text: string }[]
  encrypted_content?: string
  call_id: string
  name: string
  namespace?: string
  arguments: string
  input: string
  execution: string
  action: Record<string, unknown>
}

export type Answer = {
  id: string
  object: string
  status: string
  model: string
  output: Item[]
  error: { code: string; message: string } | null
  incomplete_details: { reason: string } | null
  usage: {
    input_tokens: number
    input_tokens_details: { cached_tokens: number; cache_write_tokens: number }
    output_tokens: number
    output_tokens_details: { reasoning_tokens: number }
    total_tokens: number
  } | null
}

export type Event = {
  type: string
  sequence_number: number
  response: Answer
  item: Item
  delta: string
  text: string
  arguments: string
  refusal: string
  obfuscation?: string
  output_index: number
}

export function answerOf(response: Response | Promise<Response>): Promise<Answer> {
  return jsonOf(response)
}

/** The events as the client reads them, each with its name checked against its type. */
export async function eventsOf(response: Response | Promise<Response>): Promise<Event[]> {
  return readEvents(await (await response).text())
}

export function readEvents(text: string): Event[] {
  return text
    .split('\n\n')
    .filter((block) => block !== '')
    .map((block) => {
      const [name = '', json = ''] = block.split('\n')
      const event: Event = JSON.parse(json.replace(/^data: /, ''))
      if (name !== `event: ${event.type}`) throw new Error(`an event of type ${event.type} is named ${name}`)
      return event
    })
}

export function deltasOf(events: readonly Event[], type: string): string {
  return events
    .filter((event) => event.type === type)
    .map(({ delta }) => delta)
    .join('')
}
