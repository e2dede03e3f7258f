import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startSandbox } from '../sandbox.ts'
import { type BillLine, testModels } from '../testing.ts'
import { freePort } from '../../../test/support/free-port.ts'
import { temporaryFolder } from '../../../test/support/temporary-folder.ts'

const root = temporaryFolder('memory')

const complain = (cause: unknown): never => {
  throw cause
}

function open(name: string, port = 0) {
  const sandbox = startSandbox({ port, models: () => testModels, memory: { folder: join(root, name), complain } })
  return {
    ...sandbox,
    async chat(content: string): Promise<void> {
      const body = JSON.stringify({ model: 'plain', messages: [{ role: 'user', content }] })
      const headers = { authorization: 'Bearer key', 'x-client-request-id': content }
      await (await fetch(`${sandbox.baseUrl('openai')}/chat/completions`, { method: 'POST', headers, body })).text()
    },
    async bill(): Promise<BillLine[]> {
      const { data }: { data: BillLine[] } = await (await fetch(`${sandbox.url}/__bill`)).json()
      return data
    },
    clearBill: () => fetch(`${sandbox.url}/__bill`, { method: 'DELETE' }),
  }
}

const refs = (lines: readonly BillLine[]) => lines.map(({ ref }) => ref)

test('the bill survives a restart, without the lines that were cleared', async () => {
  const first = open('bill')
  await first.chat('cleared')
  await first.clearBill()
  await first.chat('one')
  const bill = await first.bill()
  await first.stop()
  const second = open('bill')
  expect(await second.bill()).toEqual(bill)
  await second.chat('two')
  expect(refs(await second.bill())).toEqual(['one', 'two'])
  await second.stop()
})

test('the contents of a request are not written to disk', async () => {
  const sandbox = open('said')
  await sandbox.chat('a-ref')
  await sandbox.stop()
  const written = readFileSync(join(root, 'said', 'journal.jsonl'), 'utf8')
  expect(written).toContain('a-ref')
  expect(written).not.toContain('messages')
})

test('a restart uses the previous port unless another is chosen or it is taken', async () => {
  const first = open('port')
  expect(readFileSync(join(root, 'port', 'port'), 'utf8')).toBe(`${first.port}\n`)
  await first.stop()

  // Unlike the port of the first, no other server is given this one between the starts.
  const port = await freePort()
  const chosen = open('port', port)
  expect(chosen.port).toBe(port)
  await chosen.stop()
  const again = open('port')
  expect(again.port).toBe(port)

  const other = open('port')
  expect(other.port).not.toBe(port)
  await Promise.all([again.stop(), other.stop()])
})

test.each(['', 'eighty', '70000', '-1', '80 80'])(
  'an invalid stored port, "%s", does not stop the sandbox from starting',
  async (text) => {
    const first = open('odd port')
    await first.stop()
    writeFileSync(join(root, 'odd port', 'port'), text)
    const sandbox = open('odd port')
    expect((await fetch(`${sandbox.url}/__bill`)).status).toBe(200)
    await sandbox.stop()
  },
)
