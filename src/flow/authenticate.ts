import type { KeyRing } from '../keys/key-ring.ts'
import type { Parts } from './run.ts'

export function makeAuthenticate(keyRing: KeyRing): Parts['authenticate'] {
  return ({ credential, address }) => keyRing.authenticate(credential, address)
}
