import type { Vendor } from '../vendor.ts'
import { explain } from './explain.ts'
import { video } from './video.ts'

/** Vidu: video only, in its own protocol. */
export const vidu: Vendor = {
  id: 'vidu',
  baseUrl: 'https://api.vidu.com',
  callRoots: ['/ent/v2'],
  environment: ['VIDU_API_KEY'],
  hangup: 'stop',
  local: false,
  explain,
  video,
}
