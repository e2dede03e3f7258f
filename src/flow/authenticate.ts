import type { KeyRing } from '../keys/key-ring.ts'
import type { Received } from './stages.ts'

export function makeAuthenticate(keyRing: KeyRing) {
  return ({ credential, address }: Pick<Received, 'credential' | 'address'>) =>
    keyRing.authenticate(credential, address)
}
