import { GatewayError } from '../base/errors.ts'
import type { VideoNews, VideoResult } from '../capabilities/video.ts'
import type { TaskResult } from '../store/task-schema.ts'
import type { Task } from '../store/tasks.ts'
import type { Exchange } from '../upstream/transport.ts'
import { type AdoptedTask, paceAt } from './adopt.ts'
import { contextOf, type TaskRoute } from './calls.ts'
import type { TaskParts } from './parts.ts'

/** A vendor's link works for a day after the video was made; an operator who wants it for longer has videos kept. */
const linkMs = 24 * 60 * 60_000
// About five minutes, as the waits between two polls grow.
export const keepTriesMax = 12

/** Whether the vendor has said that the video is made. From then on its usage is on record, even if that is empty. */
export function isMade({ usage }: Pick<Task, 'usage'>): boolean {
  return usage !== null
}

/** How many tries to fetch a finished video have failed. Polls that failed before it was made do not count. */
export function failedTries(task: Pick<Task, 'usage' | 'failures'>): number {
  return isMade(task) ? task.failures : 0
}

const redirectsMax = 3
const linkedBytesMax = 512 * 1024 * 1024

/** Whether a video has to be fetched before the client is told of it. */
export function hasToBeKept({ keepsAll }: TaskParts, { result }: Pick<VideoNews, 'result'>): boolean {
  return result !== undefined && (result.needsKey || keepsAll)
}

type Links =
  | { readonly kind: 'links'; readonly result: TaskResult }
  /** The video could not be fetched this time; `tries` is the number of failed tries so far. */
  | { readonly kind: 'not-yet'; readonly tries: number }
  /** There is no video that its customer could open. */
  | { readonly kind: 'none' }

/**
 * The links to a video: the vendor's own, or links of ours where only our credential opens the vendor's or the operator
 * wants everything kept.
 */
export async function keepLinks(
  parts: TaskParts,
  taskRoute: TaskRoute,
  task: AdoptedTask,
  { result }: Pick<VideoNews, 'result'>,
): Promise<Links> {
  if (result === undefined) return { kind: 'none' }
  const expiresAt = madeAt(task, result, parts.store.now()) + linkMs
  const asGiven = { kind: 'links', result: { ...result, expiresAt } } as const
  if (!hasToBeKept(parts, { result })) return asGiven
  try {
    return { kind: 'links', result: await keepAll(parts, taskRoute, task, result) }
  } catch (thrown) {
    if (thrown === resting) return { kind: 'not-yet', tries: failedTries(task) }
    parts.log.warn({ task: task.id, channel: task.channel, cause: String(thrown) }, 'a video could not be kept')
    const tries = failedTries(task) + (isForgiven(parts, task, result, thrown) ? 0 : 1)
    if (tries < keepTriesMax) return { kind: 'not-yet', tries }
    return result.needsKey ? { kind: 'none' } : asGiven
  }
}

/** Keeps the video and its last frame, and puts links of ours in place of the vendor's. */
async function keepAll(
  parts: TaskParts,
  taskRoute: TaskRoute,
  task: AdoptedTask,
  result: VideoResult,
): Promise<TaskResult> {
  const { needsKey, videoUrl: vendorUrl, lastFrameUrl: vendorFrameUrl } = result
  const keep = (url: string, mediaType: string) =>
    parts.keeping(task.channel).run(() => keepOne(parts, taskRoute, task, { url, mediaType, needsKey }))
  const video = await keep(vendorUrl, 'video/mp4')
  const kept = { ...result, videoUrl: video.url, vendorUrl, expiresAt: video.expiresAt }
  if (vendorFrameUrl === undefined) return kept
  const frame = await keep(vendorFrameUrl, 'image/png')
  const expiresAt = Math.min(video.expiresAt, frame.expiresAt)
  return { ...kept, lastFrameUrl: frame.url, vendorFrameUrl, expiresAt }
}

/**
 * The video is made and paid for, so until its deadline it is not given up because our own store is away or full. A
 * video that any client can fetch from the vendor need not wait for our store. A download that our stop cut off does
 * not count.
 */
function isForgiven({ store, stopping }: TaskParts, task: Task, { needsKey }: VideoResult, thrown: unknown): boolean {
  return stopping.aborted || (isOurTrouble(thrown) && needsKey && store.now() < task.deadline)
}

/** Of everything that fetches and keeps a video, only our own store throws `overloaded`. */
function isOurTrouble(thrown: unknown): boolean {
  return thrown instanceof GatewayError && thrown.kind === 'overloaded'
}

const resting = new Error('results could not be stored a moment ago')

/** When the vendor says it made the video, where that is plausible; otherwise when we saw it. */
function madeAt({ createdAt }: Task, { madeAt: told }: VideoResult, now: number): number {
  return told !== undefined && told >= createdAt && told <= now ? told : now
}

type Link = { readonly url: string; readonly mediaType: string; readonly needsKey: boolean }

async function keepOne(parts: TaskParts, taskRoute: TaskRoute, task: AdoptedTask, link: Link) {
  if (link.needsKey && parts.storeRest.isOn) throw resting
  const fetched = link.needsKey ? await fetchWithKey(parts, taskRoute, task, link.url) : undefined
  const { body, mediaType } = fetched ?? (await fetchPlain(parts, taskRoute, link.url))
  if (body instanceof Uint8Array && (body.length === 0 || isPage(mediaType))) throw noFile()
  const type = /^(?:video|image)\//.test(mediaType) ? mediaType : link.mediaType
  try {
    return await parts.keepResult(body, { mediaType: type, accountId: task.accountId, signal: parts.stopping })
  } catch (thrown) {
    if (isOurTrouble(thrown)) parts.storeRest.begin(paceAt(parts, task).retryMsMax)
    throw thrown
  }
}

function fetchPlain({ fetchLink, timeouts, stopping }: TaskParts, { channel }: TaskRoute, url: string) {
  const { totalMs } = timeouts.fetch
  return fetchLink({ transport: 'linked', url, bytesMax: linkedBytesMax, totalMs }, channel, stopping)
}

/** The credential is sent only to the origin of the channel's base URL, wherever the vendor's links lead. */
async function fetchWithKey(parts: TaskParts, taskRoute: TaskRoute, task: AdoptedTask, link: string) {
  const { origin } = new URL(taskRoute.channel.baseUrl)
  const polled = taskRoute.adapter.poll(task.upstreamId, contextOf(parts, taskRoute, task), task.facts)
  const headers = withoutBodyHeaders(polled.headers)
  let url = link
  for (let redirects = 0; redirects <= redirectsMax; redirects++) {
    if (new URL(url).origin !== origin) return fetchPlain(parts, taskRoute, url)
    const call = { method: 'GET', url, headers } as const
    const sent = await parts.transport.send(call, parts.timeouts.fetch, parts.stopping, 'kept')
    if (sent.kind === 'failed') throw sent.error
    const { exchange } = sent
    const location = exchange.header('location')
    if (exchange.status < 300 || exchange.status >= 400 || location === null) return fileIn(exchange)
    exchange.abort()
    url = new URL(location, url).href
  }
  throw new GatewayError('upstream-failed', 'The vendor redirects too often.')
}

/** The file that a response has, read up to its first piece. Ends a response that has none. */
async function fileIn(exchange: Exchange) {
  if (exchange.status !== 200) {
    exchange.abort()
    throw new GatewayError('upstream-failed', `The vendor answered ${exchange.status} for its own video.`)
  }
  const mediaType = exchange.header('content-type')?.split(';')[0] ?? ''
  const first = isPage(mediaType) ? undefined : await exchange.read()
  if (first !== undefined) return { body: streamOf(first, exchange), mediaType }
  exchange.abort()
  throw noFile()
}

function withoutBodyHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'content-type'))
}

/** Whether a server sent an error or a page, under a good status, in place of a file. */
function isPage(mediaType: string): boolean {
  return /^(?:text\/|application\/(?:[\w.-]+\+)?(?:json|xml)$)/i.test(mediaType)
}

function noFile(): GatewayError {
  return new GatewayError('upstream-failed', "What is behind the vendor's link is no file.")
}

function streamOf(first: Uint8Array, exchange: Exchange): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start: (controller) => controller.enqueue(first),
    async pull(controller) {
      const chunk = await exchange.read()
      if (chunk === undefined) controller.close()
      else controller.enqueue(chunk)
    },
    cancel: () => exchange.abort(),
  })
}
