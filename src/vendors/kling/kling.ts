import type { Vendor } from '../vendor.ts'
import { explain } from './explain.ts'
import { video } from './video.ts'

/** Kling. Its credential is an access key and its secret: `AK:SK`. */
export const kling: Vendor = {
  id: 'kling',
  baseUrl: 'https://api.klingai.com',
  environment: ['KLING_API_KEY'],
  hangup: 'stop',
  local: false,
  explain,
  video,
}
