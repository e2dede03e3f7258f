import { openStore } from '../../store/open.ts'
import { makeStoreBank, type Bank } from './bank.ts'
import type { BankCall, BankReply } from './worker-bank.ts'

/** The bank's own thread: a flush to SQLite is synchronous, and on the request's thread it would stop every stream. */
declare const self: {
  onmessage: ((event: { data: BankCall }) => void) | null
  postMessage(reply: BankReply): void
}

let bank: Promise<Bank> | undefined
let close: (() => Promise<void>) | undefined

async function start(file: string): Promise<Bank> {
  const store = await openStore({ file })
  close = () => store.close()
  return makeStoreBank(store)
}

async function run(call: BankCall): Promise<unknown> {
  if (call.method === 'start') {
    bank = start(call.file)
    await bank
    return undefined
  }
  if (bank === undefined) throw new Error('the bank has not started')
  const open = await bank
  switch (call.method) {
    case 'open':
      return open.open(call.node, call.holdIds)
    case 'turn':
      return open.turn(call.identity, call.turn)
    case 'standing':
      return open.standing(call.identity)
    case 'close':
      return close?.()
  }
}

self.onmessage = ({ data: call }) => {
  run(call).then(
    (result) => self.postMessage({ id: call.id, kind: 'done', result }),
    (error: unknown) => {
      const { name, message } = error instanceof Error ? error : { name: 'Error', message: String(error) }
      self.postMessage({ id: call.id, kind: 'failed', name, message })
    },
  )
}
