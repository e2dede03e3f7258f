import { type SandboxModel, startSandbox } from './sandbox.ts'

/** Test models with prices that are easy to compute by hand: 2 and 1 nano-dollars in, 10 out. */
const prices = { input: 2_000n, cachedInput: 1_000n, output: 10_000n }
const size = { contextTokens: 100_000, outputTokensMax: 4_096, prices }

export const testModels: readonly SandboxModel[] = [
  { vendor: 'openai', model: 'plain', reasoning: false, efforts: [], ...size },
  { vendor: 'openai', model: 'org/slashed', reasoning: false, efforts: [], ...size },
  { vendor: 'openai', model: 'thinker', reasoning: true, efforts: ['minimal', 'low', 'medium', 'high'], ...size },
  { vendor: 'openai', model: 'optional-thinker', reasoning: true, efforts: ['none', 'low', 'xhigh', 'max'], ...size },
  { vendor: 'openai', model: 'gpt-5.4', reasoning: true, efforts: ['none', 'low', 'medium'], ...size },
  { vendor: 'openai', model: 'gpt-5.6-sol', reasoning: true, efforts: ['none', 'low', 'medium'], ...size },
  { vendor: 'openai', model: 'gpt-6.1-terra', reasoning: true, efforts: ['none', 'low', 'medium'], ...size },
  { vendor: 'openai', model: 'gpt-5.3-codex', reasoning: true, efforts: ['low', 'medium'], ...size },
  { vendor: 'moonshot', model: 'kimi-k3', reasoning: false, efforts: ['low', 'high', 'max'], ...size },
  { vendor: 'openai', model: 'one-effort', reasoning: true, efforts: ['medium'], ...size },
  { vendor: 'deepseek', model: 'reasoner', reasoning: true, efforts: [], ...size },
  { vendor: 'dashscope', model: 'qwen-plus', reasoning: true, efforts: [], ...size },
  { vendor: 'ark', model: 'doubao', reasoning: true, efforts: ['minimal', 'low', 'medium', 'high'], ...size },
  {
    vendor: 'openai',
    model: 'tiered',
    reasoning: false,
    efforts: [],
    contextTokens: 100_000,
    outputTokensMax: 4_096,
    prices: {
      input: 1_001n,
      output: 3_333n,
      request: 7_499n,
      tiers: [
        { aboveInputTokens: 50, input: 3_000n, output: 9_000n },
        { aboveInputTokens: 10, input: 2_000n, cachedInput: 500n, output: 6_000n },
      ],
    },
  },
]

type Sent = { vendor?: string; key?: string; ref?: string; signal?: AbortSignal }

/** A sandbox on a free port, and the few calls that the tests make to it. */
export function openSandbox() {
  const sandbox = startSandbox({ port: 0, models: () => testModels })

  function post(body: unknown, { vendor = 'openai', key = 'vendor-key', ref, signal }: Sent = {}): Promise<Response> {
    const root = vendor === 'dashscope' ? '/compatible-mode/v1' : ''
    return fetch(`${sandbox.baseUrl(vendor)}${root}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, ...(ref === undefined ? {} : { 'x-client-request-id': ref }) },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal ? { signal } : {}),
    })
  }

  return {
    sandbox,
    post,
    /** Sends a user's text to a model; `more` holds further fields of the request. */
    say: (text: string, more: object = {}, sent: Sent = {}): Promise<Response> =>
      post({ model: 'plain', messages: [{ role: 'user', content: text }], ...more }, sent),
    ...billOf<BillLine>(sandbox),
    calls: async (): Promise<SeenCall[]> => (await jsonOf<{ data: SeenCall[] }>(fetch(`${sandbox.url}/__calls`))).data,
  }
}

/** Reads and clears the bill of a sandbox. */
export function billOf<Line>({ url }: { readonly url: string }) {
  return {
    bill: async (ref?: string): Promise<Line[]> => {
      const query = ref === undefined ? '' : `?ref=${ref}`
      return (await jsonOf<{ data: Line[] }>(fetch(`${url}/__bill${query}`))).data
    },
    clearBill: () => fetch(`${url}/__bill`, { method: 'DELETE' }),
  }
}

export type BillLine = {
  ref: string | null
  model: string
  status: number
  units: { input: number; cachedInput: number; output: number; reasoning: number }
  cost: string
}

export type SeenCall = {
  vendor: string
  path: string
  ref: string | null
  authorization: string
  headers: Record<string, string>
  body: unknown
  text: string
}

export async function jsonOf<T>(response: Response | Promise<Response>): Promise<T> {
  const body: T = await (await response).json()
  return body
}

export type ErrorBody = { error: { message: string; type: string; param: string | null; code: string | null } }

type Delta = {
  role?: string
  content?: string | null
  reasoning_content?: string | null
  tool_calls?: { index: number; id?: string; type?: string; function?: Named; custom?: Named }[]
  function_call?: Named
}
type Named = { name?: string; arguments?: string; input?: string }

export type Usage = {
  prompt_tokens: number
  completion_tokens: number
  total_tokens: number
  prompt_tokens_details: { cached_tokens: number }
  completion_tokens_details: { reasoning_tokens: number }
}

export type Completion = {
  id: string
  model: string
  created: number
  choices: {
    index: number
    finish_reason: string
    logprobs: { content: { token: string; logprob: number; bytes: number[]; top_logprobs: unknown[] }[] } | null
    message: {
      content: string | null
      reasoning_content?: string
      tool_calls?: {
        id: string
        type: string
        function: { name: string; arguments: string }
        custom: { name: string; input: string }
      }[]
      function_call?: { name: string; arguments: string }
    }
  }[]
  usage: Usage
}

export type Chunk = {
  id: string
  model: string
  choices: { index: number; delta: Delta; finish_reason: string | null; logprobs: unknown }[]
  usage?: Usage | null
}

export function completionOf(response: Response | Promise<Response>): Promise<Completion> {
  return jsonOf(response)
}

export async function errorOf(
  response: Response | Promise<Response>,
): Promise<{ status: number } & ErrorBody['error']> {
  const { status } = await response
  const { error }: ErrorBody = await (await response).json()
  return { status, ...error }
}

/** The payloads of all events, `[DONE]` included. */
export async function eventsOf(response: Response | Promise<Response>): Promise<string[]> {
  return splitEvents(await (await response).text())
}

export function splitEvents(text: string): string[] {
  return text
    .split('\n\n')
    .filter((event) => event !== '')
    .map((event) => event.replace(/^data: /, ''))
}

export async function chunksOf(response: Response | Promise<Response>): Promise<Chunk[]> {
  const events = await eventsOf(response)
  return events.filter((event) => event !== '[DONE]').map((event): Chunk => JSON.parse(event))
}

export function contentOf(chunks: readonly Chunk[], index = 0): string {
  return chunks
    .flatMap((chunk) => chunk.choices)
    .filter((choice) => choice.index === index)
    .map((choice) => choice.delta.content ?? '')
    .join('')
}

/** Asks again until there is an answer. Every try is a request, so the event loop turns in between. */
export async function until<T>(ask: () => Promise<T | undefined>): Promise<T> {
  for (;;) {
    const found = await ask()
    if (found !== undefined) return found
  }
}
