import { openSecondConnection } from '../../store/open.ts'
import { makeStoreBank, type Bank } from './bank.ts'
import { decodeEndings } from './records.ts'
import type { BankCall, BankReply } from './worker-bank.ts'

/** The bank's own thread: a flush to SQLite is synchronous, and on the requests' thread it would stall every stream. */
declare const self: {
  addEventListener(type: 'message', listener: (event: { data: BankCall }) => void): void
  postMessage(reply: BankReply): void
}

let bank: Promise<Bank> | undefined
let close: (() => Promise<void>) | undefined

async function start(file: string): Promise<Bank> {
  const store = await openSecondConnection(file)
  close = () => store.close()
  return makeStoreBank(store)
}

async function run(call: BankCall): Promise<unknown> {
  if (call.method === 'start') bank = start(call.file)
  if (bank === undefined) throw new Error('the bank has not started')
  const started = await bank
  if (call.method === 'open') return started.open(call.node, call.holdIds)
  if (call.method === 'turn') {
    const { endings, ...turn } = call.turn
    return started.turn(call.identity, { ...turn, postings: decodeEndings(endings) })
  }
  if (call.method === 'resolveLostTurn') return started.resolveLostTurn(call.identity, call.unknown)
  if (call.method === 'close') await close?.()
  return undefined
}

self.addEventListener('message', ({ data: call }) => {
  run(call).then(
    (result) => self.postMessage({ id: call.id, kind: 'done', result }),
    (error: unknown) => {
      const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) }
      self.postMessage({ id: call.id, kind: 'failed', name, message })
    },
  )
})
