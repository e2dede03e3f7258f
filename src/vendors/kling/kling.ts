import type { Vendor } from '../vendor.ts'
import { explain } from './explain.ts'
import { video } from './video.ts'

/** Kling: video only. Its credential is an access key and its secret, with which each call signs a token. */
export const kling: Vendor = {
  id: 'kling',
  baseUrl: 'https://api.klingai.com',
  callRoots: ['/v1'],
  environment: ['KLING_API_KEY'],
  keyForm: { says: 'the access key and its secret with a colon between them, AK:SK', pattern: /^[^:\s]+:\S+$/ },
  hangup: 'stop',
  local: false,
  explain,
  video,
}
