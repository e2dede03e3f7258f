import { type SandboxModel, startSandbox } from '../sandbox.ts'
import { type BillLine as PlainLine, billOf, until } from '../testing.ts'

type Prices = SandboxModel['prices']

/** Dollars per second that are easy to compute by hand. */
const cents = (count: number): bigint => BigInt(count) * 10_000_000_000n

const free = { input: 0n, output: 0n }
const bySize = { '480p': cents(5), '720p': cents(10), '1080p': cents(15) }
const wan: Prices = { ...free, videoSecond: bySize }
const wanFlash: Prices = { ...free, videoSecond: { '720p': { sound: cents(4), silent: cents(2) } } }
// Pico-dollars per token.
const seedance: Prices = {
  ...free,
  videoToken: { default: 6_000_000n, '1080p': 7_000_000n },
  videoTokenWithInput: { default: 4_000_000n },
}
const seedance15: Prices = { ...free, videoToken: { default: { sound: 2_000_000n, silent: 1_000_001n } } }
const veo: Prices = { ...free, videoSecond: { default: cents(40), '4k': cents(60) } }
const hailuo: Prices = { ...free, perVideo: { '768p/6s': cents(28), '768p/10s': cents(56), '1080p/6s': cents(49) } }
const kling: Prices = { ...free, videoSecond: { std: cents(4), pro: { sound: cents(14), silent: cents(7) } } }
const runway: Prices = { ...free, videoSecond: { default: cents(5) } }
const pixverse: Prices = { ...free, videoSecond: { '720p': { sound: cents(5), silent: cents(4) }, '360p': cents(2) } }
const sora: Prices = { ...free, videoSecond: { default: cents(10) } }
const soraPro: Prices = { ...free, videoSecond: { default: cents(30), '1792x1024': cents(50) } }
// Half a cent per credit.
const vidu: Prices = { ...free, videoToken: { default: 5_000_000_000n } }

const size = { reasoning: false, efforts: [], contextTokens: 0, outputTokensMax: 0 }
const video = (vendor: string, model: string, prices: Prices): SandboxModel => ({
  vendor,
  model,
  capabilities: ['video'],
  ...size,
  prices,
})

const models: readonly SandboxModel[] = [
  video('dashscope', 'wan2.5-t2v-preview', wan),
  video('dashscope', 'wan2.5-i2v-preview', wan),
  video('dashscope', 'wan2.6-t2v', wan),
  video('dashscope', 'wan2.6-i2v', wan),
  video('dashscope', 'wan2.6-i2v-flash', wanFlash),
  video('dashscope', 'wan2.6-r2v', wan),
  video('dashscope', 'wan2.7-t2v', wan),
  video('dashscope', 'wan2.7-t2v-2026-04-25', wan),
  video('dashscope', 'wan2.7-i2v', wan),
  video('dashscope', 'wan2.7-r2v', wan),
  video('dashscope', 'wan3.0-video', wan),
  { ...video('dashscope', 'qwen-plus', free), capabilities: ['chat'] },
  video('ark', 'doubao-seedance-2-0-260128', seedance),
  video('ark', 'doubao-seedance-2-0-fast-260128', seedance),
  video('ark', 'doubao-seedance-2-5-260901', seedance),
  video('ark', 'doubao-seedance-1-5-pro-251215', seedance15),
  video('ark', 'doubao-seedance-1-0-pro-250528', seedance15),
  video('google', 'veo-3.1-generate-preview', veo),
  video('google', 'veo-3.1-lite-generate-preview', veo),
  { ...video('google', 'gemini-2.5-flash', free), capabilities: ['chat'] },
  video('kling', 'kling-v1', kling),
  video('kling', 'kling-v2-6', kling),
  video('minimax', 'MiniMax-Hailuo-02', hailuo),
  { ...video('minimax', 'MiniMax-M2.5', free), capabilities: ['chat'] },
  video('pixverse', 'v6', pixverse),
  video('runway', 'gen4_turbo', runway),
  video('runway', 'gen4.5', runway),
  video('runway', 'gen4_aleph', runway),
  video('vidu', 'viduq3-turbo', vidu),
  video('vidu', 'viduq3-pro', vidu),
  video('openai', 'sora-2', sora),
  video('openai', 'sora-2-pro', soraPro),
  { ...video('openai', 'gpt-4o', free), capabilities: ['chat'] },
]

/** Steering words for a video that stays in one state for as long as a test looks at it. */
export const staysQueued = 'sandbox:queued=600000'
export const staysRunning = 'sandbox:queued=0 sandbox:stuck'

export type BillLine = PlainLine & { units: { video?: Record<string, unknown> } }

type Sent = { method?: string; headers?: Record<string, string>; ref?: string; signal?: AbortSignal }

/** A sandbox on a free port, and the calls that every protocol's tests make. */
export function openVideos() {
  const sandbox = startSandbox({ port: 0, models: () => models })
  const { bill, clearBill } = billOf<BillLine>(sandbox)
  return {
    sandbox,
    bill,
    clearBill,
    /** The bill line of a task, once there is one. */
    lineOf: (ref: string): Promise<BillLine> => until(async () => (await bill(ref))[0]),
    send: (url: string, body?: unknown, { method, headers, ref, signal }: Sent = {}): Promise<Response> =>
      fetch(url, {
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: { authorization: 'Bearer key', ...headers, ...(ref !== undefined && { 'x-client-request-id': ref }) },
        ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
        ...(signal && { signal }),
      }),
  }
}

/** A callback receiver that keeps what is posted, and answers with the given statuses and then with 200. */
export function openListener(...statuses: number[]) {
  const heard: Record<string, unknown>[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      heard.push((await request.json()) as Record<string, unknown>)
      return new Response(null, { status: statuses.shift() ?? 200 })
    },
  })
  return { url: `http://127.0.0.1:${server.port}/hook`, heard, stop: () => server.stop(true) }
}

/** Width, height and milliseconds according to the boxes of an MP4 file, and its number of tracks. */
export function readMp4(file: Uint8Array): { width: number; height: number; ms: number; tracks: number } {
  const bytes = Buffer.from(file)
  const movie = bytes.indexOf('mvhd') + 4
  const track = bytes.indexOf('tkhd') + 4
  return {
    width: bytes.readUInt32BE(track + 76) / 0x10000,
    height: bytes.readUInt32BE(track + 80) / 0x10000,
    ms: (bytes.readUInt32BE(movie + 16) * 1_000) / bytes.readUInt32BE(movie + 12),
    tracks: bytes.toString('latin1').split('tkhd').length - 1,
  }
}

/** Whether the answer never came or broke off. */
export function isLost(answer: Promise<unknown>): Promise<boolean> {
  return answer.then(
    () => false,
    () => true,
  )
}
