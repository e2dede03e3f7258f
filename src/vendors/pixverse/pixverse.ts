import type { Vendor } from '../vendor.ts'
import { explain } from './explain.ts'
import { video } from './video.ts'

/** PixVerse: video only, in its own protocol. */
export const pixverse: Vendor = {
  id: 'pixverse',
  baseUrl: 'https://app-api.pixverse.ai',
  callRoots: ['/openapi/v2'],
  environment: ['PIXVERSE_API_KEY'],
  hangup: 'stop',
  local: false,
  explain,
  video,
}
