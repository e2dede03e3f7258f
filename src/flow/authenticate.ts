import type { KeyRing } from '../keys/key-ring.ts'
import type { Authenticated, Received } from './stages.ts'

export function makeAuthenticate(keyRing: KeyRing) {
  return async (received: Received): Promise<Authenticated> => {
    const principal = await keyRing.authenticate(received.credential, received.address)
    return { ...received, principal }
  }
}
