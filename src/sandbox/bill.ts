import type { Journal } from './memory/journal.ts'
import type { SandboxPrices, VideoRates } from './model.ts'
import { createRing } from './ring.ts'

/**
 * What the vendor counted. `input` excludes tokens read from or written to the cache; `output` includes `reasoning`.
 */
export type Units = {
  input: number
  cachedInput: number
  cacheWrite5m?: number
  cacheWrite1h?: number
  output: number
  reasoning: number
  webSearches?: number
  /** Tokens of images and audio are not part of `input` and `output`. */
  imageInput?: number
  audioInput?: number
  imageOutput?: number
  audioOutput?: number
  characters?: number
  video?: VideoUnits
  images?: { readonly count: number; readonly size?: string; readonly quality?: string }
}

/** One video. `seconds` is as billed and includes input video; `tokens` is set where the vendor bills by tokens. */
export type VideoUnits = {
  readonly seconds: number
  readonly tokens?: number
  readonly resolution: string
  readonly sound: boolean
  readonly hasInputVideo?: boolean
  /** Made when the vendor has spare capacity, at half the price. */
  readonly isFlex?: boolean
}

export const noUnits: Units = { input: 0, cachedInput: 0, output: 0, reasoning: 0 }

export type BillEntry = {
  ref: string | null
  model: string
  status: number
  units: Units
  /** Absent on calls that cost nothing: failures, and those that were hung up on before their first token. */
  prices?: SandboxPrices
}

export type BillLine = { ref: string | null; model: string; status: number; units: Units; cost: string }

export type Bill = {
  add(entry: BillEntry): void
  lines(ref?: string): BillLine[]
  clear(): void
}

// At about 150 bytes a line, a long load test stays within a few hundred megabytes.
const linesMax = 1_000_000

/** The journal that keeps the bill, and the lines already in it when it was read. */
type KeptBill = { readonly journal?: Journal | undefined; readonly lines?: readonly BillLine[] }

/**
 * The vendor's own account of what it charges. Adding must be cheap, so costs are computed only when the bill is read.
 */
export function createBill({ journal, lines = [] }: KeptBill = {}): Bill {
  const entries = createRing<BillEntry | BillLine>(linesMax)
  for (const line of lines) entries.push(line)
  return {
    add: (entry) => {
      entries.push(entry)
      journal?.append({ bill: lineOf(entry), at: Date.now() })
    },
    lines: (ref) =>
      entries
        .values()
        .filter((entry) => ref === undefined || entry.ref === ref)
        .map(lineOf),
    clear: () => {
      entries.clear()
      journal?.append({ cleared: true })
    },
  }
}

function lineOf(entry: BillEntry | BillLine): BillLine {
  if ('cost' in entry) return entry
  const { prices, ...line } = entry
  return { ...line, cost: prices ? formatPico(costInPico(prices, line.units)) : '0' }
}

function costInPico(prices: SandboxPrices, units: Units): bigint {
  const { cacheWrite5m = 0, cacheWrite1h = 0, webSearches = 0, characters = 0 } = units
  const { imageInput = 0, audioInput = 0, imageOutput = 0, audioOutput = 0 } = units
  const prompt = units.input + units.cachedInput + cacheWrite5m + cacheWrite1h + imageInput + audioInput
  let rate: Omit<SandboxPrices, 'tiers'> = prices
  let above = -1
  for (const tier of prices.tiers ?? []) {
    if (prompt <= tier.aboveInputTokens || tier.aboveInputTokens <= above) continue
    rate = tier
    above = tier.aboveInputTokens
  }
  const outputRate = units.reasoning > 0 ? (rate.thinkingOutput ?? rate.output) : rate.output
  return (
    BigInt(units.input) * rate.input +
    BigInt(units.cachedInput) * (rate.cachedInput ?? rate.input) +
    BigInt(cacheWrite5m) * (rate.cacheWrite5m ?? rate.input) +
    BigInt(cacheWrite1h) * (rate.cacheWrite1h ?? rate.cacheWrite5m ?? rate.input) +
    BigInt(units.output) * outputRate +
    BigInt(imageInput) * (rate.imageInput ?? rate.input) +
    BigInt(audioInput) * (rate.audioInput ?? rate.input) +
    BigInt(imageOutput) * (rate.imageOutput ?? rate.output) +
    BigInt(audioOutput) * (rate.audioOutput ?? rate.output) +
    BigInt(webSearches) * (prices.webSearch ?? 0n) +
    BigInt(characters) * (prices.character ?? 0n) +
    BigInt(units.images?.count ?? 0) * pricePerImage(prices, units) +
    videoCost(prices, units.video) +
    (prices.request ?? 0n)
  )
}

function pricePerImage({ perImage = {} }: SandboxPrices, { images }: Units): bigint {
  const size = images?.size ?? ''
  return perImage[`${size}/${images?.quality ?? ''}`] ?? perImage[size] ?? perImage['default'] ?? 0n
}

function videoCost(prices: SandboxPrices, video: VideoUnits | undefined): bigint {
  if (!video) return 0n
  // Videos are sold in these lengths alone. One of another length costs nothing on this bill, so a test notices it.
  if (prices.perVideo) return prices.perVideo[`${video.resolution}/${video.seconds}s`] ?? 0n
  const tokenRates = (video.hasInputVideo && prices.videoTokenWithInput) || prices.videoToken
  const cost =
    (hundredthsOf(video.seconds) * videoRate(prices.videoSecond, video)) / 100n +
    BigInt(video.tokens ?? 0) * videoRate(tokenRates, video)
  return video.isFlex ? (cost + 1n) / 2n : cost
}

/** Seconds of video are counted to the hundredth. */
function hundredthsOf(seconds: number): bigint {
  return BigInt(seconds.toFixed(2).replace('.', ''))
}

function videoRate(rates: VideoRates = {}, { resolution, sound }: VideoUnits): bigint {
  const rate = rates[resolution] ?? rates['default'] ?? 0n
  if (typeof rate === 'bigint') return rate
  return sound ? rate.sound : rate.silent
}

/** Pico-dollars as decimal dollars, rounded once, half up, to the nano. Shares no arithmetic with the gateway. */
function formatPico(pico: bigint): string {
  const digits = ((pico + 500n) / 1000n).toString().padStart(10, '0')
  const fraction = digits.slice(-9).replace(/0+$/, '')
  const whole = digits.slice(0, -9)
  return fraction === '' ? whole : `${whole}.${fraction}`
}
