import { expect, test } from 'bun:test'
import { thrownBy } from '../../test/support/thrown.ts'
import { macFor } from '../base/secret.ts'
import { makeSessions, readsAudio } from './sessions.ts'

const open = () => {
  const sessions = makeSessions(macFor(Buffer.alloc(32, 'x'), 'tool-session'))
  const session = sessions.open('key_a', '2025-11-25')
  const client = new AbortController()
  return { sessions, session, client }
}

function stream(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      controller.enqueue(new Uint8Array([1]))
      controller.close()
    },
  })
}

const answering = () => Promise.resolve(new Response(stream()))
const nothing = () => Promise.resolve(new Response(null, { status: 202 }))
const failing = () => Promise.reject(new Error('it could not be answered'))

/** Follows a request with this answer, and says whether its client can still cancel it. */
async function followed(answer: () => Promise<Response>, afterwards: (response: Response) => Promise<unknown>) {
  const { sessions, session, client } = open()
  let seen: AbortSignal | undefined
  const following = sessions.follow(session, 7, client.signal, (signal) => {
    seen = signal
    return answer()
  })
  await following.then(afterwards, () => {})
  sessions.cancel(session, 7)
  return seen?.aborted === true ? 'followed' : 'forgotten'
}

test('a session is valid only for the key that it was opened for', () => {
  const { sessions, session } = open()
  sessions.check(session, 'key_a')
  expect(() => sessions.check(session, 'key_b')).toThrow('Session not found')
  expect(() => sessions.check('made-up', 'key_a')).toThrow('Session not found')
})

test('a session remembers whether its client reads audio, and cannot be altered to say something else', () => {
  const { sessions } = open()
  const [first, second] = ['2024-11-05', '2025-03-26'].map((revision) => sessions.open('key_a', revision))
  sessions.check(first ?? '', 'key_a')
  expect([first, second, null].map((session) => readsAudio(session ?? null))).toEqual([false, true, true])
  const altered = first?.replace('-without-audio', '') ?? ''
  expect(() => sessions.check(altered, 'key_a')).toThrow('Session not found')
})

test('a request is followed until its answer is read to the end or abandoned', async () => {
  expect(await followed(answering, () => Promise.resolve())).toBe('followed')
  expect(await followed(answering, (response) => response.text())).toBe('forgotten')
  expect(await followed(answering, async (response) => response.body?.cancel())).toBe('forgotten')
})

test('a request whose answer has no body is forgotten at once', async () => {
  expect(await followed(nothing, () => Promise.resolve())).toBe('forgotten')
})

test('a request that fails is forgotten, and its error is passed on', async () => {
  expect(await followed(failing, () => Promise.resolve())).toBe('forgotten')
  const { sessions, session, client } = open()
  expect(String(await thrownBy(sessions.follow(session, 7, client.signal, failing)))).toContain('could not be answered')
})

test('a request is cancelled by its own session and id, or when its client leaves', async () => {
  const { sessions, session, client } = open()
  const signals: AbortSignal[] = []
  for (const id of [1, '1', 2]) {
    await sessions.follow(session, id, client.signal, (signal) => {
      signals.push(signal)
      return Promise.resolve(new Response(stream()))
    })
  }
  sessions.cancel(sessions.open('key_a', '2025-11-25'), 1)
  sessions.cancel(session, 1)
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, false, false])
  client.abort()
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true, true])
})

test('nothing is kept of a request that is over', async () => {
  const { sessions, session } = open()
  const signals: WeakRef<AbortSignal>[] = []
  const noticed = (signal: AbortSignal) => {
    signals.push(new WeakRef(signal))
    return answering()
  }
  for (let id = 0; id < 50; id++) {
    await (await sessions.follow(session, id, new AbortController().signal, noticed)).text()
  }
  // What a weak reference has shown is kept until this turn of the event loop is over.
  await new Promise(setImmediate)
  Bun.gc(true)
  // A few may still be on the stack, which is searched for anything that looks like a reference.
  expect(signals.filter((signal) => signal.deref() !== undefined).length).toBeLessThan(10)
})

test('a request whose client has left before it is followed is cancelled from the start', async () => {
  const { sessions, session, client } = open()
  client.abort('gone')
  const { reason } = await new Promise<AbortSignal>((seen) => {
    void sessions.follow(session, 7, client.signal, (signal) => {
      seen(signal)
      return answering()
    })
  })
  expect(reason).toBe('gone')
})

test('of two requests with the same id, the end of the first leaves the second followed', async () => {
  const { sessions, session, client } = open()
  const signals: AbortSignal[] = []
  const follow = () =>
    sessions.follow(session, 7, client.signal, (signal) => {
      signals.push(signal)
      return answering()
    })
  const [first] = [await follow(), await follow()]
  await first.text()
  sessions.cancel(session, 7)
  expect(signals.map(({ aborted }) => aborted)).toEqual([false, true])
})
