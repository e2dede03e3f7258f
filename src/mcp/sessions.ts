import { randomBytes } from 'node:crypto'
import { GatewayError } from '../base/errors.ts'
import { sameBytes, type Mac } from '../base/secret.ts'

/**
 * Sessions of older clients. They cancel by a request of their own, which has to find the one it means; newer clients
 * close the connection. A session is a name under our signature, bound to its key: nothing is kept for it, and a node
 * that never saw it knows that it is good.
 */
export type Sessions = {
  open(keyId: string): string
  /** Throws `not-found` for one that another key was given. */
  check(session: string, keyId: string): void
  /** Aborts with the client's signal, or when the client of the session cancels this id. */
  follow(session: string, id: string | number, signal: AbortSignal): Followed
  cancel(session: string, id: string | number): void
}

export type Followed = { readonly signal: AbortSignal; end(): void }

const nameBytes = 16

export function makeSessions(mac: Mac): Sessions {
  const running = new Map<string, AbortController>()
  const sign = (name: string, keyId: string) => `${name}.${mac(`${name} ${keyId}`).toString('hex', 0, nameBytes)}`

  return {
    open(keyId) {
      return sign(randomBytes(nameBytes).toString('hex'), keyId)
    },

    check(session, keyId) {
      const [name = ''] = session.split('.')
      if (sameBytes(Buffer.from(session), Buffer.from(sign(name, keyId)))) return
      throw new GatewayError('not-found', 'Session not found: begin a new one.', { code: 'session_not_found' })
    },

    follow(session, id, signal) {
      const place = placeOf(session, id)
      const controller = new AbortController()
      running.set(place, controller)
      const end = () => {
        if (running.get(place) === controller) running.delete(place)
      }
      const either = AbortSignal.any([signal, controller.signal])
      either.addEventListener('abort', end, { once: true })
      return { signal: either, end }
    },

    cancel(session, id) {
      running.get(placeOf(session, id))?.abort()
    },
  }
}

function placeOf(session: string, id: string | number): string {
  return `${session} ${JSON.stringify(id)}`
}
