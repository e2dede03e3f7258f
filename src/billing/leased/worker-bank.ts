import { threadProgram } from '../../base/program-files.ts'
import type { Grant } from '../../store/turn-accounts.ts'
import { Fenced, type Identity, type OpenedNode, type Standing, type Turn } from '../../store/turns.ts'
import { BankUnavailable, type Bank } from './bank.ts'
import { encodeEndings, endedBy, WrittenTurn } from './records.ts'

type Asked =
  | { readonly method: 'start'; readonly file: string }
  | { readonly method: 'open'; readonly node: string; readonly holdIds: readonly string[] }
  | { readonly method: 'turn'; readonly identity: Identity; readonly turn: SentTurn }
  | { readonly method: 'resolveLostTurn'; readonly identity: Identity; readonly unknown: number }
  | { readonly method: 'close' }

/** A turn as it is sent to the thread, with its postings as one text. */
type SentTurn = Omit<Turn, 'postings'> & { readonly endings: string }

/** What each call resolves with. */
export type BankResults = {
  readonly start: undefined
  readonly open: OpenedNode
  readonly turn: ReadonlyMap<string, Grant>
  readonly resolveLostTurn: Standing
  readonly close: undefined
}

export type BankCall = Asked & { readonly id: number }

export type BankReply =
  | { readonly id: number; readonly kind: 'done'; readonly result: unknown }
  | { readonly id: number; readonly kind: 'failed'; readonly name: string; readonly message: string }

// Twice as many as in the requests' own thread: such a turn takes no longer than a flush may wait, and delays only
// requests that wait for a lease. Each posting is a tenth cheaper.
const postingsPerTurn = 1_000

/**
 * The bank in a thread of its own, for SQLite. The teller makes one call at a time, so this only passes messages on.
 * The thread starts at once but opens the file only when it is `migrated`, since a migration may outlast the wait for a
 * lock.
 */
export async function startWorkerBank(file: string, migrated: Promise<unknown>): Promise<Bank> {
  const worker = new Worker(threadProgram('billing/leased/bank-worker.ts'))
  const pending = new Map<number, { resolve: (result: unknown) => void; reject: (error: Error) => void }>()
  let calls = 0
  let failure: Error | undefined

  worker.addEventListener('message', ({ data: reply }: MessageEvent<BankReply>) => {
    const call = pending.get(reply.id)
    pending.delete(reply.id)
    if (reply.kind === 'done') call?.resolve(reply.result)
    else call?.reject(revive(reply.name, reply.message))
  })
  worker.addEventListener('error', (event) => {
    failure = new Error(`the bank's thread failed: ${event.message}`)
    for (const { reject } of pending.values()) reject(failure)
    pending.clear()
  })

  function ask<A extends Asked>(asked: A): Promise<BankResults[A['method']]> {
    // A thread that has failed never answers.
    if (failure !== undefined) return Promise.reject(failure)
    const answer = new Promise<unknown>((resolve, reject) => {
      const id = ++calls
      pending.set(id, { resolve, reject })
      worker.postMessage({ ...asked, id })
    })
    // A message carries no type: the thread keeps to the same table.
    return answer as Promise<BankResults[A['method']]>
  }

  try {
    await migrated
    await ask({ method: 'start', file })
  } catch (error) {
    worker.terminate()
    throw error
  }
  return {
    postingsPerTurn,
    open: (node, holdIds) => ask({ method: 'open', node, holdIds }),
    turn(identity, turn) {
      const { number, takes, returns } = turn
      const ended = turn instanceof WrittenTurn ? turn.ended : turn.postings.map(endedBy)
      const sent = { number, takes, returns, endings: encodeEndings(ended) }
      return ask({ method: 'turn', identity, turn: sent })
    },
    resolveLostTurn: (identity, unknown) => ask({ method: 'resolveLostTurn', identity, unknown }),
    async close() {
      if (failure === undefined) await ask({ method: 'close' })
      failure ??= new Error('the bank is closed')
      worker.terminate()
    },
  }
}

/** An error loses its class on the way between threads; the two classes that callers look for get it back. */
function revive(name: string, message: string): Error {
  const error = blankOf(name)
  error.message = message
  return error
}

function blankOf(name: string): Error {
  if (name === 'BankUnavailable') return new BankUnavailable(undefined)
  return name === 'Fenced' ? new Fenced('') : new Error()
}
