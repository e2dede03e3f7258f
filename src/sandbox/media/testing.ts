import { type SandboxModel, startSandbox } from '../sandbox.ts'
import { type BillLine as PlainLine, billOf } from '../testing.ts'
import type { Units } from '../bill.ts'

const nano = 1_000n

/** Prices that are easy to compute by hand, in nano-dollars: 2 in, 10 out, and those that the list adds. */
function sold(vendor: string, model: string, capabilities: string[], more: Partial<SandboxModel['prices']> = {}) {
  const prices = { input: 2n * nano, output: 10n * nano, ...more }
  return {
    vendor,
    model,
    capabilities,
    reasoning: false,
    efforts: [],
    contextTokens: 8192,
    outputTokensMax: 4096,
    prices,
  }
}

const perImage = { default: 40_000n * nano }
const imageTokens = { imageInput: 8n * nano, imageOutput: 30n * nano }
const audioTokens = { audioOutput: 12n * nano }
const character = { character: 15n * nano }

const models: readonly SandboxModel[] = [
  sold('openai', 'plain', ['chat']),
  sold('openai', 'text-embedding-3-small', ['embeddings']),
  sold('openai', 'text-embedding-ada-002', ['embeddings']),
  sold('openai', 'gpt-image-1', ['images', 'edits'], imageTokens),
  sold('openai', 'gpt-image-2', ['images', 'edits'], imageTokens),
  sold('openai', 'dall-e-2', ['images', 'edits'], { perImage: { ...perImage, '512x512': 18_000n * nano } }),
  sold('openai', 'dall-e-3', ['images'], { perImage: { '1024x1024/hd': 80_000n * nano, '1024x1024': 40_000n * nano } }),
  sold('openai', 'tts-1', ['speech'], character),
  sold('openai', 'gpt-4o-mini-tts', ['speech'], audioTokens),
  sold('dashscope', 'text-embedding-v4', ['embeddings']),
  sold('dashscope', 'qwen-image-2.0', ['images'], { perImage }),
  sold('dashscope', 'qwen-image-max', ['images'], { perImage }),
  sold('dashscope', 'qwen-image-edit', ['images'], { perImage }),
  sold('dashscope', 'qwen-image-edit-plus', ['images'], { perImage }),
  sold('dashscope', 'qwen3-tts-flash', ['speech'], character),
  sold('dashscope', 'qwen3-tts-instruct-flash', ['speech'], character),
  sold('dashscope', 'qwen-tts', ['speech'], audioTokens),
  sold('dashscope', 'cosyvoice-v3', ['speech'], character),
  sold('ark', 'doubao-embedding-large-text-250515', ['embeddings']),
  sold('ark', 'doubao-seedream-4-0-250828', ['images'], { perImage }),
  sold('ark', 'doubao-seedream-4-5-251128', ['images'], { perImage }),
  sold('ark', 'doubao-seedream-5-0-lite', ['images'], { perImage }),
  sold('google', 'gemini-2.5-pro', ['chat']),
  sold('google', 'gemini-embedding-001', ['embeddings']),
  sold('google', 'gemini-embedding-2', ['embeddings']),
  sold('google', 'gemini-2.5-flash-image', ['images'], imageTokens),
  sold('google', 'gemini-3-pro-image', ['images'], imageTokens),
  sold('google', 'gemini-2.5-flash-preview-tts', ['speech'], audioTokens),
  sold('google', 'imagen-4.0-generate-001', ['images'], { perImage }),
  sold('minimax', 'speech-2.6-hd', ['speech'], character),
  sold('elevenlabs', 'eleven_multilingual_v2', ['speech'], character),
  sold('voyage', 'voyage-3.5', ['embeddings']),
  sold('cohere', 'embed-v4.0', ['embeddings']),
]

export type BillLine = Omit<PlainLine, 'units'> & { units: Units }

const credentials = { authorization: 'Bearer vendor-key', 'x-goog-api-key': 'vendor-key', 'xi-api-key': 'vendor-key' }

/** A sandbox that sells media, and the few calls that the tests make to it. */
export function openMedia() {
  const sandbox = startSandbox({ port: 0, models: () => models })
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${sandbox.url}${path}`, {
      method: 'POST',
      headers: { ...credentials, ...headers },
      body: JSON.stringify(body),
    })
  return {
    sandbox,
    post,
    ...billOf<BillLine>(sandbox),
  }
}

export async function bytesOf(response: Response | Promise<Response>): Promise<Buffer<ArrayBuffer>> {
  return Buffer.from(await (await response).arrayBuffer())
}
