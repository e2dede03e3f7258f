import { closeSync, openSync } from 'node:fs'
import { threadProgram } from '../base/program-files.ts'
import type { SampleFormat } from './wav.ts'

type Asked =
  | ({ readonly method: 'open'; readonly session: number } & SampleFormat)
  | { readonly method: 'encode'; readonly session: number; readonly samples: Uint8Array }
  | { readonly method: 'end' | 'close'; readonly session: number }

export type Mp3Call = Asked & { readonly id: number }
export type Mp3Reply =
  | { readonly id: number; readonly kind: 'done'; readonly bytes: Uint8Array }
  | { readonly id: number; readonly kind: 'failed'; readonly message: string }

/** Encodes one piece of audio to mp3. Frames come out as soon as they are full. */
export type Mp3Encoding = {
  encode(samples: Uint8Array): Promise<Uint8Array>
  end(): Promise<Uint8Array>
  /** Call this if `end` is not reached: the encoder is free for other audio, and what still waits for it fails. */
  close(): void
}

export type Mp3Encoders = {
  open(samples: SampleFormat): Mp3Encoding
  stop(): void
}

type Waiting = {
  readonly call: Mp3Call
  readonly resolve: (bytes: Uint8Array) => void
  readonly reject: (error: Error) => void
}

// Enough that the thread always has work. The others wait on this side, where audio that nobody wants any more is
// dropped: otherwise clients that hang up and come back would make it wait for ever longer.
const atOnceMax = 4

/** Encoders in a thread of their own, which starts when the first encoder is opened. */
export function makeMp3Encoders(): Mp3Encoders {
  let waiting: Waiting[] = []
  const sent = new Map<number, Waiting>()
  let worker: Worker | undefined
  let calls = 0
  let sessions = 0

  function start(): Worker {
    assertFilesToStart()
    const started = new Worker(threadProgram('media/mp3-worker.ts'))
    started.addEventListener('message', ({ data: reply }: MessageEvent<Mp3Reply>) => {
      const one = sent.get(reply.id)
      sent.delete(reply.id)
      if (reply.kind === 'done') one?.resolve(reply.bytes)
      else one?.reject(new Error(reply.message))
      send()
    })
    started.addEventListener('error', (event) => fail(new Error(`the encoder's thread failed: ${event.message}`)))
    return started
  }

  /** The audio in the thread is lost; the next call starts a new thread. */
  function fail(error: Error): void {
    worker?.terminate()
    worker = undefined
    for (const { reject } of [...sent.values(), ...waiting]) reject(error)
    sent.clear()
    waiting = []
  }

  function send(): void {
    while (sent.size < atOnceMax) {
      const next = waiting.shift()
      if (next === undefined) return
      try {
        worker ??= start()
        sent.set(next.call.id, next)
        worker.postMessage(next.call)
      } catch (thrown) {
        sent.delete(next.call.id)
        next.reject(thrown as Error)
      }
    }
  }

  function ask(asked: Asked, place: 'last' | 'first' = 'last'): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      const one = { call: { ...asked, id: ++calls }, resolve, reject }
      if (place === 'last') waiting.push(one)
      else waiting.unshift(one)
      send()
    })
  }

  /** What the thread is at work on is not called off, but nobody waits for it any more. */
  function close(session: number): void {
    const isOfSession = ({ call }: Waiting) => call.session === session
    const dropped = [...sent.values(), ...waiting].filter(isOfSession)
    waiting = waiting.filter((one) => !isOfSession(one))
    for (const { reject } of dropped) reject(new Error('the encoding was closed'))
    if (worker !== undefined) ask({ method: 'close', session }, 'first').catch(() => {})
  }

  return {
    open(samples) {
      const session = ++sessions
      const opened = ask({ method: 'open', session, ...samples })
      // The first use reports the failure; without this handler, an unhandled rejection would end the process.
      opened.catch(() => {})
      return {
        encode: (bytes) => opened.then(() => ask({ method: 'encode', session, samples: bytes })),
        end: () => opened.then(() => ask({ method: 'end', session })),
        close: () => close(session),
      }
    },
    stop: () => fail(new Error('the encoder has stopped')),
  }
}

// A thread opens three files at a time while it starts; the others are for connections that come at that moment.
const filesToStart = 8

/** Throws if that many files cannot be opened: a thread that lacks two of them at its start ends the whole process. */
function assertFilesToStart(): void {
  const opened: number[] = []
  try {
    while (opened.length < filesToStart) opened.push(openSync('/dev/null', 'r'))
  } finally {
    for (const fd of opened) closeSync(fd)
  }
}
