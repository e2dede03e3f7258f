import type { AttemptId } from '../base/ids.ts'
import type { JsonObject } from '../base/json.ts'
import type { ImagesAsk } from '../capabilities/images.ts'
import type { ImageLimits } from '../capabilities/limits.ts'
import type { VideoFacts } from '../capabilities/video.ts'
import { imagesCodec } from '../wire/images.ts'
import { vendors } from './index.ts'
import type { CallContext, VendorResponse, VideoAdapter } from './vendor.ts'

/** What a call is made with, where a test does not say otherwise. */
export const plainContext: CallContext = {
  baseUrl: 'https://vendor.example',
  credential: 'vk-0123456789abcdef',
  upstreamModel: 'theirs',
  reasoning: false,
  efforts: [],
  rules: [],
  outputTokensMax: 1_000,
  ref: 'att_1' as AttemptId,
  namespaced: (label) => `mine/${label}`,
}

/** A client's body, as it is asked of a model with these limits. */
export function imagesAskOf(body: JsonObject, images: ImageLimits, sold: 'pieces' | 'tokens'): ImagesAsk {
  const asked = { body: { model: 'ours', ...body }, files: [], bodyBytes: 100, header: () => null }
  return imagesCodec.readAsk(asked, () => ({
    id: 'ours',
    contextTokens: 1,
    outputTokensMax: 1,
    choicesMax: 1,
    reasoning: false,
    efforts: [],
    images,
    sells: () => sold === 'tokens',
    sellsImage: () => true,
    sellsVideo: () => true,
  }))
}

export function videoOf(vendor: string): VideoAdapter {
  const video = vendors.get(vendor)?.video
  if (video === undefined) throw new Error(`${vendor} makes no videos`)
  return video
}

/** What was asked for, where a test does not say otherwise. */
export const facts: VideoFacts = {
  kind: 't2v',
  seconds: 5,
  resolution: '720p',
  ratio: '16:9',
  sound: true,
  hasInputVideo: false,
}

/** A vendor's response about a video. */
export const answer = (body: unknown, status = 200): VendorResponse & { readonly status: number } => ({
  status,
  header: () => null,
  body: new TextEncoder().encode(typeof body === 'string' ? body : JSON.stringify(body)),
})
