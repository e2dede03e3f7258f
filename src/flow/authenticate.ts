import type { KeyRing, Principal } from '../keys/key-ring.ts'
import type { Received } from './stages.ts'

export function makeAuthenticate(keyRing: KeyRing) {
  return async <R extends Pick<Received, 'credential' | 'address'>>(
    received: R,
  ): Promise<R & { readonly principal: Principal }> => {
    const principal = await keyRing.authenticate(received.credential, received.address)
    return { ...received, principal }
  }
}
