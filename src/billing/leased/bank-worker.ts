import { asError } from '../../base/errors.ts'
import { openSecondConnection } from '../../store/open.ts'
import { makeStoreBank, type Bank } from './bank.ts'
import { decodeEndings } from './records.ts'
import type { BankCall, BankReply, BankResults } from './worker-bank.ts'

/** The bank's own thread: a flush to SQLite is synchronous, and on the requests' thread it would stall every stream. */
declare const self: {
  addEventListener(type: 'message', listener: (event: { data: BankCall }) => void): void
  postMessage(reply: BankReply): void
}

type Started = { readonly bank: Bank; readonly close: () => Promise<void> }

let starting: Promise<Started> | undefined

async function start(file: string): Promise<Started> {
  const store = await openSecondConnection(file)
  return { bank: makeStoreBank(store), close: () => store.close() }
}

async function run(call: BankCall): Promise<BankResults[BankCall['method']]> {
  if (call.method === 'start') starting = start(call.file)
  if (starting === undefined) throw new Error('the bank has not started')
  const { bank, close } = await starting
  switch (call.method) {
    case 'start':
      return undefined
    case 'open':
      return bank.open(call.node, call.holdIds)
    case 'turn': {
      const { endings, ...turn } = call.turn
      return bank.turn(call.identity, { ...turn, postings: decodeEndings(endings) })
    }
    case 'resolveLostTurn':
      return bank.resolveLostTurn(call.identity, call.unknown)
    case 'close':
      await close()
      return undefined
  }
}

self.addEventListener('message', ({ data: call }) => {
  run(call).then(
    (result) => self.postMessage({ id: call.id, kind: 'done', result }),
    (error: unknown) => {
      const { name, message } = asError(error)
      self.postMessage({ id: call.id, kind: 'failed', name, message })
    },
  )
})
