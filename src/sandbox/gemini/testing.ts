import { type SandboxModel, startSandbox } from '../sandbox.ts'
import { type BillLine, billOf, jsonOf } from '../testing.ts'

/** Prices that are easy to compute by hand: 2 and 1 nano-dollars in, 10 out. */
const prices = { input: 2_000n, cachedInput: 1_000n, output: 10_000n }
const size = { vendor: 'google', reasoning: false, contextTokens: 100_000, outputTokensMax: 4_096, prices }
const levels = ['minimal', 'low', 'medium', 'high']

const models: readonly SandboxModel[] = [
  { ...size, model: 'gemini-2.5-pro', efforts: levels },
  { ...size, model: 'gemini-2.5-flash', efforts: ['none', ...levels] },
  { ...size, model: 'gemini-2.5-flash-lite', efforts: ['none', ...levels] },
  { ...size, model: 'gemini-3-pro-preview', efforts: ['low', 'high'] },
  // Does not reason, so its output tokens are the words of its answers.
  { ...size, model: 'gemini-2.0-flash', efforts: [] },
]

type Sent = { model?: string; method?: string; key?: string; ref?: string; signal?: AbortSignal }

const plainModel = 'gemini-2.0-flash'
export const thirdModel = 'gemini-3-pro-preview'
export const events = 'streamGenerateContent?alt=sse'
export const array = 'streamGenerateContent'

/** A sandbox on a free port, and the few calls that the tests make to Google. */
export function openGemini() {
  const sandbox = startSandbox({ port: 0, models: () => models })
  const root = `${sandbox.baseUrl('google')}/v1beta`

  function post(body: unknown, sent: Sent = {}): Promise<Response> {
    const { model = plainModel, method = 'generateContent', key = 'vendor-key', ref, signal } = sent
    return fetch(`${root}/models/${model}:${method}`, {
      method: 'POST',
      headers: { 'x-goog-api-key': key, ...(ref !== undefined && { 'x-client-request-id': ref }) },
      body: typeof body === 'string' ? body : JSON.stringify(body),
      ...(signal && { signal }),
    })
  }

  return {
    sandbox,
    root,
    post,
    /** Sends a user's text; `more` holds further fields of the request. */
    say: (text: string, more: object = {}, sent: Sent = {}): Promise<Response> =>
      post({ contents: [user(text)], ...more }, sent),
    ...billOf<BillLine>(sandbox),
  }
}

export const user = (...texts: string[]) => ({ role: 'user', parts: texts.map((text) => ({ text })) })

export type Part = {
  text?: string
  thought?: boolean
  thoughtSignature?: string | undefined
  functionCall?: { name: string; args: Record<string, unknown> } | undefined
}

export type Usage = {
  promptTokenCount: number
  candidatesTokenCount?: number
  thoughtsTokenCount?: number
  cachedContentTokenCount?: number
  totalTokenCount: number
  promptTokensDetails: { modality: string; tokenCount: number }[]
}

export type Answer = {
  candidates?: {
    index: number
    content?: { role: string; parts?: Part[] }
    finishReason?: string
    safetyRatings?: unknown[]
    logprobsResult?: { topCandidates?: unknown[]; chosenCandidates: { token: string }[] }
  }[]
  promptFeedback?: { blockReason: string }
  usageMetadata: Usage
  modelVersion: string
  responseId: string
}

export function answerOf(response: Response | Promise<Response>): Promise<Answer> {
  return jsonOf(response)
}

export type GoogleErrorBody = {
  code: number
  message: string
  status: string
  details?: ({ '@type': string } & Record<string, unknown>)[]
}

/** The error, taken out of its array if there is one. */
export async function errorOf(
  response: Response | Promise<Response>,
): Promise<GoogleErrorBody & { http: number; isArray: boolean }> {
  const { status: http } = await response
  type Body = { error: GoogleErrorBody }
  const body: Body | [Body] = await (await response).json()
  const isArray = Array.isArray(body)
  return { ...(isArray ? body[0] : body).error, http, isArray }
}

export function splitEvents(text: string): string[] {
  return text
    .split('\r\n\r\n')
    .filter((event) => event !== '')
    .map((event) => event.replace(/^data: /, ''))
}

export async function eventsOf(response: Response | Promise<Response>): Promise<Answer[]> {
  return splitEvents(await (await response).text()).map((event): Answer => JSON.parse(event))
}

export const partsOf = (answer: Answer, index = 0): readonly Part[] => answer.candidates?.[index]?.content?.parts ?? []

/** The visible text, without the reasoning. */
export function textOf(answers: Answer | readonly Answer[], index = 0): string {
  return [answers]
    .flat()
    .flatMap((answer) => partsOf(answer, index))
    .filter((part) => part.thought !== true)
    .map((part) => part.text ?? '')
    .join('')
}

export const callsOf = (answers: Answer | readonly Answer[]): readonly Part[] =>
  [answers]
    .flat()
    .flatMap((answer) => partsOf(answer))
    .filter((part) => part.functionCall !== undefined)

export const finishOf = (answer: Answer | undefined): string | undefined => answer?.candidates?.[0]?.finishReason
