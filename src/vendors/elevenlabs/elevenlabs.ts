import type { Vendor } from '../vendor.ts'
import { explain } from './explain.ts'
import { speech } from './speech.ts'

/** ElevenLabs: speech only, in its own protocol. */
export const elevenlabs: Vendor = {
  id: 'elevenlabs',
  baseUrl: 'https://api.elevenlabs.io',
  callRoots: ['/v1'],
  environment: ['ELEVENLABS_API_KEY'],
  hangup: 'stop',
  local: false,
  explain,
  speech,
}
