import { expect } from 'bun:test'
import type { AttemptId } from '../../src/base/ids.ts'
import type { VideoNews, VideoRequest } from '../../src/capabilities/video.ts'
import type { Model } from '../../src/catalogue/model.ts'
import { simulatedChannels, simulatedModels } from '../../src/simulated.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { until } from '../../src/sandbox/testing.ts'
import type { Channel } from '../../src/upstream/channels.ts'
import { writeForm } from '../../src/upstream/http/form.ts'
import type { Call, CreateContext, VendorResponse, VideoAdapter } from '../../src/vendors/vendor.ts'
import { askFor, catalogue } from './video-asks.ts'

/** A model at its simulated vendor, with all that an adapter needs for one task. */
export type Shop = {
  readonly model: Model
  readonly channel: Channel
  readonly adapter: VideoAdapter
  readonly context: CreateContext
}

/** Adapters against the simulators, over real HTTP and without a gateway between them. */
export function openShops() {
  const sandbox = startSandbox({ port: 0, models: () => simulatedModels(catalogue, []) })
  let count = 0

  function shopOf(id: string): Shop {
    const model = catalogue.models.get(id)
    const offer = model?.offers[0]
    const channel = simulatedChannels([], (vendor) => sandbox.baseUrl(vendor)).find(
      ({ vendor }) => vendor.id === offer?.vendor,
    )
    if (model === undefined || offer === undefined || channel?.vendor.video === undefined)
      throw new Error(`no shop for ${id}`)
    const context = {
      baseUrl: channel.baseUrl,
      credential: channel.credentials[0] ?? '',
      upstreamModel: offer.upstreamModel,
      reasoning: false,
      efforts: [],
      rules: [],
      outputTokensMax: 0,
      now: Date.now(),
      ref: `att_${(count += 1)}` as AttemptId,
      namespaced: (label: string) => `mine-${label}`,
    }
    return { model, channel, adapter: channel.vendor.video, context }
  }

  async function make(id: string, body: object) {
    const shop = shopOf(id)
    const ask = askFor(id, body)
    const task = await create(shop, ask)
    const news = await until(async () => {
      const found = await look(shop, ask, task)
      return isOver(found) ? found : undefined
    })
    return { shop, ask, task, news }
  }

  async function billOf({ context }: Shop): Promise<string | undefined> {
    const response = await fetch(`${sandbox.url}/__bill?ref=${context.ref}`)
    const { data } = (await response.json()) as { data: { cost: string }[] }
    return data[0]?.cost
  }

  return { shopOf, send, create, look, make, isOver, billOf, stop: () => sandbox.stop() }
}

async function send(call: Call): Promise<VendorResponse & { readonly status: number }> {
  const { method = 'POST', url, headers, body } = call
  const form = typeof body === 'object' && !(body instanceof Uint8Array) ? writeForm(body) : undefined
  const type = form !== undefined && { 'content-type': form.contentType }
  const sent = form === undefined ? body : Buffer.concat(form.pieces)
  const response = await fetch(url, {
    method,
    headers: { ...headers, ...type },
    ...(sent !== undefined && { body: sent as BodyInit }),
  })
  return { status: response.status, header: (name) => response.headers.get(name), body: await response.bytes() }
}

async function create({ adapter, context }: Shop, ask: VideoRequest): Promise<string> {
  const uploaded: string[] = []
  for (const call of adapter.upload?.calls(ask, context) ?? []) {
    uploaded.push(named(adapter.upload?.read(await send(call))))
  }
  const response = await send(adapter.create(ask, { ...context, uploaded }))
  expect(`${response.status} ${new TextDecoder().decode(response.body)}`).toStartWith('200 ')
  return named(adapter.readCreated(response))
}

function named(read: string | { readonly errorStatus: number } | undefined): string {
  if (typeof read !== 'string') throw new Error(`an error of status ${read?.errorStatus}`)
  return read
}

/** What the vendor says about a task and, once the video is made, where it is. */
async function look({ adapter, context }: Shop, ask: VideoRequest, id: string): Promise<VideoNews> {
  const news = adapter.readTask(await send(adapter.poll(id, context, ask)), ask)
  const call = news.state === 'succeeded' ? adapter.locate?.call(news.record, context) : undefined
  const result = call && adapter.locate?.read(await send(call), ask)
  return result === undefined ? news : { ...news, result }
}

const isOver = ({ state }: VideoNews): boolean => !['submitted', 'running', 'unknown-word'].includes(state)
