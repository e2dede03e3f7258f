import { GatewayError } from '../base/errors.ts'
import type { VideoNews, VideoResult } from '../capabilities/video.ts'
import type { TaskError, TaskResult } from '../store/task-schema.ts'
import type { Task } from '../store/tasks.ts'
import type { Exchange } from '../upstream/transport.ts'
import { paceAt } from './adopt.ts'
import { contextOf, type Home } from './calls.ts'
import type { TaskParts } from './parts.ts'
import { noOutput } from './state.ts'

/** A vendor's link is good for a day after the film was made; whoever wants it longer has it kept. */
const linkMs = 24 * 60 * 60_000
// About five minutes, as the waits between two looks grow.
export const keepTriesMax = 12

/** Whether the vendor has said that the film is made. What it counted is on record from then on, be it nothing. */
export function isMade({ usage }: Pick<Task, 'usage'>): boolean {
  return usage !== null
}

/** How often a film that is made could not be had. Polls that failed before it was made are none of these. */
export function failedTries(task: Pick<Task, 'usage' | 'failures'>): number {
  return isMade(task) ? task.failures : 0
}

const redirectsMax = 3
const linkedBytesMax = 512 * 1024 * 1024

/** Whether a film has to be fetched before anybody is told of it. */
export function hasToBeKept({ keepsAll }: TaskParts, { result }: Pick<VideoNews, 'result'>): boolean {
  return result !== undefined && (result.needsKey || keepsAll)
}

/** It could not be had this time, which makes so many tries in vain. */
type NotHad = { readonly tries: number }

/**
 * Where the film is to be had: under the vendor's own link, or, where only our key opens that or the operator wants
 * everything kept, under one of ours.
 */
export async function keepLinks(
  parts: TaskParts,
  home: Home,
  task: Task,
  { result }: Pick<VideoNews, 'result'>,
): Promise<TaskResult | TaskError | NotHad> {
  if (result === undefined) return noOutput
  const asGiven = { ...result, expiresAt: madeAt(task, result, parts.store.now()) + linkMs }
  if (!hasToBeKept(parts, { result })) return asGiven
  const { needsKey } = result
  const keep = (url: string, mediaType: string) =>
    parts.keeping(task.channel).run(() => keepOne(parts, home, task, { url, mediaType, needsKey }))
  try {
    const video = await keep(result.videoUrl, 'video/mp4')
    const { lastFrameUrl } = result
    const frame = lastFrameUrl === undefined ? undefined : await keep(lastFrameUrl, 'image/png')
    return {
      ...result,
      videoUrl: video.url,
      vendorUrl: result.videoUrl,
      ...(frame !== undefined &&
        lastFrameUrl !== undefined && { lastFrameUrl: frame.url, vendorFrameUrl: lastFrameUrl }),
      expiresAt: Math.min(video.expiresAt, frame?.expiresAt ?? video.expiresAt),
    }
  } catch (thrown) {
    if (thrown === resting) return { tries: failedTries(task) }
    parts.log.warn({ task: task.id, channel: task.channel, cause: String(thrown) }, 'a video could not be kept')
    const tries = failedTries(task) + (isForgiven(parts, task, result, thrown) ? 0 : 1)
    if (tries < keepTriesMax) return { tries }
    return needsKey ? noOutput : asGiven
  }
}

/**
 * The film is paid for and there: until its deadline it is not given up for a store of ours that is away or full. What anybody
 * can fetch need not wait for that. One that was cut off because the node stops is the next one's.
 */
function isForgiven({ store, stopping }: TaskParts, task: Task, { needsKey }: VideoResult, thrown: unknown): boolean {
  return stopping.aborted || (isOurTrouble(thrown) && needsKey && store.now() < task.deadline)
}

/** Of what a film is fetched and kept with, our own store alone says so. */
function isOurTrouble(thrown: unknown): boolean {
  return thrown instanceof GatewayError && thrown.kind === 'overloaded'
}

const resting = new Error('results could not be stored a moment ago')

/** By the vendor's clock, where it says something that can be; else when we saw it. */
function madeAt({ createdAt }: Task, { madeAt: told }: VideoResult, now: number): number {
  return told !== undefined && told >= createdAt && told <= now ? told : now
}

type Link = { readonly url: string; readonly mediaType: string; readonly needsKey: boolean }

async function keepOne(parts: TaskParts, home: Home, task: Task, link: Link) {
  if (link.needsKey && parts.storeRest.isOn) throw resting
  const fetched = link.needsKey ? await fetchWithKey(parts, home, task, link.url) : undefined
  const { body, mediaType } = fetched ?? (await fetchPlain(parts, home, link.url))
  const type = /^(?:video|image)\//.test(mediaType) ? mediaType : link.mediaType
  try {
    return await parts.keepResult(body, { mediaType: type, accountId: task.accountId, signal: parts.stopping })
  } catch (thrown) {
    if (isOurTrouble(thrown)) parts.storeRest.begin(paceAt(parts, task).retryMsMax)
    throw thrown
  }
}

function fetchPlain({ fetchLink, timeouts, stopping }: TaskParts, { channel }: Home, url: string) {
  const signal = AbortSignal.any([stopping, AbortSignal.timeout(timeouts.fetch.totalMs)])
  return fetchLink({ transport: 'linked', url, bytesMax: linkedBytesMax }, channel, signal)
}

/** The key goes to the origin of the channel's address and to nobody else, wherever the vendor's links may lead. */
async function fetchWithKey(parts: TaskParts, home: Home, task: Task, first: string) {
  const { origin } = new URL(home.channel.baseUrl)
  const { headers } = home.adapter.poll(task.upstreamId ?? '', contextOf(parts, home, task), task.facts)
  let url = first
  for (let redirects = 0; redirects <= redirectsMax; redirects++) {
    if (new URL(url).origin !== origin) return fetchPlain(parts, home, url)
    const call = { method: 'GET', url, headers: withoutBodyHeaders(headers) } as const
    const sent = await parts.transport.send(call, parts.timeouts.fetch, parts.stopping, 'kept')
    if (sent.kind === 'failed') throw sent.error
    const { exchange } = sent
    const location = exchange.header('location')
    if (exchange.status >= 300 && exchange.status < 400 && location !== null) {
      exchange.abort()
      url = new URL(location, url).href
      continue
    }
    if (exchange.status !== 200) {
      exchange.abort()
      throw new GatewayError('upstream-failed', `The vendor answered ${exchange.status} for its own video.`)
    }
    return { body: streamOf(exchange), mediaType: exchange.header('content-type')?.split(';')[0] ?? '' }
  }
  throw new GatewayError('upstream-failed', 'The vendor redirects too often.')
}

function withoutBodyHeaders(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.toLowerCase() !== 'content-type'))
}

function streamOf(exchange: Exchange): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const chunk = await exchange.read()
      if (chunk === undefined) controller.close()
      else controller.enqueue(chunk)
    },
    cancel: () => exchange.abort(),
  })
}
