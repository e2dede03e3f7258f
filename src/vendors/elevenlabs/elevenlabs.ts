import type { Vendor } from '../vendor.ts'
import { explain } from './explain.ts'
import { speech } from './speech.ts'

/** ElevenLabs: speech alone, in words of its own. */
export const elevenlabs: Vendor = {
  id: 'elevenlabs',
  baseUrl: 'https://api.elevenlabs.io',
  environment: ['ELEVENLABS_API_KEY'],
  hangup: 'stop',
  local: false,
  explain,
  speech,
}
