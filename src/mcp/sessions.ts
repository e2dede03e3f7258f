import { randomBytes } from 'node:crypto'
import { GatewayError } from '../base/errors.ts'
import { sameBytes, type Mac } from '../base/secret.ts'

/**
 * Sessions of older clients. They cancel by a separate request, which has to find the call it means; newer clients
 * close the connection. A session is a name with our signature, bound to its key. Nothing is stored for it, and a node
 * that has never seen it can verify it. The name also says what the client cannot read, because these clients give
 * their revision only when they begin.
 */
export type Sessions = {
  open(keyId: string, revision: string): string
  /** Throws `not-found` for a session that was given to another key. */
  check(session: string, keyId: string): void
  /**
   * Answers a request under a signal that aborts with the client's own, or when the client cancels this id in its
   * session. The request stays cancellable until its answer was read to the end, abandoned, or failed.
   */
  follow(session: string, id: string | number, signal: AbortSignal, answer: Answering): Promise<Response>
  cancel(session: string, id: string | number): void
}

/** Answers a request until the signal aborts. */
export type Answering = (signal: AbortSignal) => Promise<Response>

const nameBytes = 16

// Revisions are named by their dates.
const audioSince = '2025-03-26'
const withoutAudio = '-without-audio'

/** Whether the client of a session that was checked reads audio. Clients without a session are taken for newer ones. */
export function readsAudio(session: string | null): boolean {
  return session === null || !nameIn(session).endsWith(withoutAudio)
}

function nameIn(session: string): string {
  return session.split('.')[0] ?? ''
}

export function makeSessions(mac: Mac): Sessions {
  const running = new Map<string, AbortController>()
  const sign = (name: string, keyId: string) => `${name}.${mac(`${name} ${keyId}`).toString('hex', 0, nameBytes)}`

  return {
    open(keyId, revision) {
      const name = randomBytes(nameBytes).toString('hex')
      return sign(revision < audioSince ? `${name}${withoutAudio}` : name, keyId)
    },

    check(session, keyId) {
      if (sameBytes(Buffer.from(session), Buffer.from(sign(nameIn(session), keyId)))) return
      throw new GatewayError('not-found', 'Session not found: begin a new one.', { code: 'session_not_found' })
    },

    async follow(session, id, signal, answer) {
      const place = placeOf(session, id)
      // Not `AbortSignal.any`: with a listener, the runtime keeps such a signal, and the whole request with it, until
      // one of its sources aborts, which for most requests is never.
      const controller = new AbortController()
      running.set(place, controller)
      const leave = () => controller.abort(signal.reason)
      const end = () => {
        signal.removeEventListener('abort', leave)
        if (running.get(place) === controller) running.delete(place)
      }
      controller.signal.addEventListener('abort', end, { once: true })
      if (signal.aborted) leave()
      else signal.addEventListener('abort', leave, { once: true })
      try {
        return untilRead(await answer(controller.signal), end)
      } catch (thrown) {
        end()
        throw thrown
      }
    },

    cancel(session, id) {
      running.get(placeOf(session, id))?.abort()
    },
  }
}

function placeOf(session: string, id: string | number): string {
  return `${session} ${JSON.stringify(id)}`
}

/** The same response, which reports when it was read to its end or abandoned. */
function untilRead(response: Response, ended: () => void): Response {
  if (response.body === null) {
    ended()
    return response
  }
  const reader = response.body.getReader()
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        ended()
        controller.close()
      } catch {
        ended()
        controller.close()
      }
    },
    cancel(reason) {
      ended()
      return reader.cancel(reason)
    },
  })
  return new Response(body, response)
}
