import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { zeroNano } from '../../src/base/money.ts'
import { makeCli, type Cli } from '../support/cli.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { says } from '../support/streams.ts'

setDefaultTimeout(120_000)

let cli: Cli
let gateway: TestGateway
let bill: string
beforeEach(async () => {
  gateway = await startTestGateway({ mode: 'leased' })
  cli = makeCli({ data: gateway.folder })
  bill = `${gateway.sandboxUrl}/__bill`
})
afterEach(async () => {
  await cli.close()
  await gateway.assertBooks()
  await gateway.close()
})

type Line = { ref: string; cost: string; units: { input: number; output: number } }

async function say(words: string): Promise<void> {
  await (await gateway.post('/v1/chat/completions', says(words))).text()
}

/** The bill, once the gateway has booked all of it and has given back what it had leased, both by itself. */
async function booked(calls: number): Promise<Line[]> {
  const { db } = gateway.store
  await until(async () => {
    const attempts = await db.selectFrom('attempt').select('id').execute()
    const leases = await db.selectFrom('lease').select('node').where('amount', '>', zeroNano).execute()
    return attempts.length === calls && leases.length === 0
  })
  const { data } = (await (await fetch(bill)).json()) as { data: Line[] }
  expect(data).toHaveLength(calls)
  return data
}

async function tell(statement: string): Promise<void> {
  await sql.raw(statement).execute(gateway.store.db)
}

describe('turnpike reconcile', () => {
  test('differences are shown with their reason, booked when asked, and gone the second time', async () => {
    await say('Hello!')
    await say('Hello! sandbox:nousage sandbox:tokens=40')
    const [, guessed] = await booked(2)
    const found = await cli.run(['reconcile', '--bill', bill])
    expect(found.code).toBe(2)
    expect(found.out).toContain('matched  1 call,')
    expect(found.out).toMatch(new RegExp(`estimated +${guessed?.ref} .*the vendor reported no usage`))

    const dry = await cli.run(['reconcile', '--bill', bill, '--repair', 'dry'])
    expect(dry).toMatchObject({ code: 2, out: expect.stringContaining('would book 1 in all') })
    const applied = await cli.run(['reconcile', '--bill', bill, '--repair', 'apply'])
    expect(applied).toMatchObject({ code: 0, out: expect.stringContaining('booked 1 in all') })
    const again = await cli.run(['reconcile', '--bill', bill, '--repair', 'apply'])
    expect(again.code).toBe(0)
    expect(again.out).toContain('matched  2 calls')
    expect(again.out).toContain('booked 0 in all')
  })

  test('a difference that cannot be booked is reported, and the others are booked', async () => {
    await say('Hello! sandbox:nousage sandbox:tokens=40')
    await say('Hello! sandbox:nousage sandbox:tokens=50')
    const [stuck, other] = await booked(2)
    await tell(`create trigger stuck before update on attempt when new.id = '${stuck?.ref}'
      begin select raise(abort, 'the disk says no'); end`)
    const applied = await cli.run(['reconcile', '--bill', bill, '--repair', 'apply'])
    expect(applied.code).toBe(1)
    expect(applied.out).toContain(`could not book what mends ${stuck?.ref}: the disk says no`)
    expect(applied.out).toMatch(new RegExp(`booked a correction of .* for ${other?.ref}`))
    const told = await cli.run(['reconcile', '--bill', bill, '--repair', 'apply', '--json'])
    expect(JSON.parse(told.out)).toMatchObject({
      verdict: 1,
      repaired: [],
      not_repaired: [{ ref: stuck?.ref, error: 'the disk says no' }],
    })
    await tell('drop trigger stuck')
    expect((await cli.run(['reconcile', '--bill', bill, '--repair', 'apply'])).code).toBe(0)
  })

  test('an invalid or unreachable address of a bill is refused with the reason', async () => {
    const none = await cli.run(['reconcile', '--bill', 'notaurl'])
    expect([none.code, none.err]).toEqual([
      1,
      expect.stringMatching(/--bill takes an address .*, not "notaurl"; a file: --vendor-export/),
    ])
    const away = await cli.run(['reconcile', '--bill', 'http://127.0.0.1:1/bill'])
    expect([away.code, away.err]).toEqual([1, expect.stringContaining('nothing answers at http://127.0.0.1:1/bill')])
    const both = await cli.run(['reconcile', '--bill', bill, '--vendor-export', 'bill.json'])
    expect([both.code, both.err]).toEqual([1, 'turnpike: give --bill or --vendor-export, not both\n'])
  })

  test('an empty bill is not taken for one that agrees', async () => {
    await say('Hello!')
    await booked(1)
    cli.write('empty.csv', 'ref,cost\n')
    const empty = await cli.run(['reconcile', '--vendor-export', 'empty.csv'])
    expect([empty.code, empty.err]).toEqual([1, expect.stringContaining('the bill has no line')])
    const named = await cli.run(['reconcile', '--vendor-export', 'empty.csv', '--vendor', 'openai'])
    expect([named.code, named.out]).toEqual([2, expect.stringContaining('ledger-only')])
    const misspelt = await cli.run(['reconcile', '--vendor-export', 'empty.csv', '--vendor', 'opneai'])
    expect([misspelt.code, misspelt.err]).toEqual([1, expect.stringContaining('there is no vendor "opneai"')])
    const absent = await cli.run(['reconcile', '--vendor-export', 'nowhere.csv'])
    expect([absent.code, absent.err]).toEqual([1, 'turnpike: there is no file nowhere.csv\n'])
    mkdirSync(join(cli.folder, 'bills'))
    const folder = await cli.run(['reconcile', '--vendor-export', 'bills'])
    expect([folder.code, folder.err]).toEqual([1, 'turnpike: bills is a folder, not a bill\n'])
  })

  test("a vendor's export is read and compared with the ledger", async () => {
    await say('Hello!')
    const [line] = await booked(1)
    const file = join(cli.folder, 'export.csv')
    const check = (...args: string[]) => cli.run(['reconcile', '--vendor-export', file, ...args])
    cli.write(
      'export.csv',
      `ref,cost,input,output\n${line?.ref},${line?.cost},${line?.units.input},${line?.units.output}\n`,
    )
    expect((await check()).code).toBe(0)
    // A vendor's own usage at our cost prices should be its bill.
    cli.write('export.csv', `ref,cost\n${line?.ref},1.5\n`)
    const wrong = await check()
    expect(wrong).toMatchObject({ code: 1, out: expect.stringContaining('amount-differs') })
    expect((await check('--repair', 'apply')).code).toBe(0)
    // A correction can be corrected: by the simulator's own bill, with which the books are compared after each test.
    expect((await cli.run(['reconcile', '--bill', bill, '--repair', 'apply'])).code).toBe(0)
    cli.write('export.csv', 'id\nx\n')
    expect(await check()).toMatchObject({ code: 1, err: expect.stringContaining('columns ref and cost') })
  })
})

test('a node is reclaimed only when it is silent and --confirm is given', async () => {
  const absent = await cli.run(['ledger', 'reclaim', '--node', 'node_x', '--confirm'])
  expect(absent).toMatchObject({ code: 1, err: expect.stringContaining('there is no node "node_x"') })
  const asked = await cli.run(['ledger', 'reclaim', '--node', 'node_x'])
  expect(asked).toMatchObject({ code: 1, out: '', err: expect.stringContaining('there is no node "node_x"') })
  await say('Hello!')
  const node = (await Bun.file(join(gateway.folder, 'node')).text()).trim()
  const alive = await cli.run(['ledger', 'reclaim', '--node', node, '--confirm'])
  expect(alive).toMatchObject({ code: 1, err: expect.stringContaining('was heard of at') })
  const early = await cli.run(['ledger', 'reclaim', '--node', node])
  expect(early).toMatchObject({ code: 1, out: '', err: expect.stringContaining('was heard of at') })
  for (const [id, amount] of [
    ['node_silent', 2_500_000_000],
    ['node_other', 1],
  ]) {
    await tell(`insert into node (id, epoch, turn, seen_at) select '${id}', epoch, turn, 0 from node limit 1`)
    await tell(`insert into lease (node, account_id, amount) select '${id}', id, ${amount} from account`)
    await tell(`update account set held = held + ${amount}`)
  }
  const account = gateway.accountId
  const silent = await cli.run(['ledger', 'reclaim', '--node', 'node_silent'])
  expect(silent).toMatchObject({ code: 2, out: expect.stringContaining('To go ahead, add --confirm.') })
  const reclaim = ['ledger', 'reclaim', '--node', 'node_silent', '--json']
  const planned = await cli.run(reclaim)
  expect(planned.code).toBe(2)
  expect(JSON.parse(planned.out)).toEqual({ node: 'node_silent', would_return: [{ account, amount: '2.5' }] })
  expect(await cli.json([...reclaim, '--confirm'])).toEqual({
    node: 'node_silent',
    returned: [{ account, amount: '2.5' }],
  })
})
