import type { Vendor } from '../vendor.ts'
import { explain } from './explain.ts'
import { video } from './video.ts'

/** Runway: video only, in its own protocol. */
export const runway: Vendor = {
  id: 'runway',
  baseUrl: 'https://api.dev.runwayml.com',
  callRoots: ['/v1'],
  environment: ['RUNWAYML_API_SECRET'],
  hangup: 'stop',
  local: false,
  explain,
  video,
}
