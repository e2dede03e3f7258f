import { expect, test } from 'bun:test'
import { eachEngine } from '../../test/support/engines.ts'
import { nano } from '../base/money.ts'
import { insertNew } from './bulk.ts'
import { json } from './rows.ts'

const request = {
  id: 'req_a',
  account_id: 'acc_a',
  key_id: 'key_a',
  model: 'gpt-x',
  capability: 'chat',
  status: 200,
  cost: nano(5n),
  basis: 'vendor',
  usage: json({ input: 3, output: 4 }),
  streamed: true,
  duration_ms: 12,
  created_at: 1_800_000_000_000,
  hold_id: null,
} as const

/** A row for each number, with values of its own. */
function rowsOf(numbers: readonly number[]) {
  return numbers.map((at) => ({ ...request, id: `req_${at}`, cost: nano(BigInt(at)), hold_id: `hold_${at}` }))
}

const byId = (a: { id: string }, b: { id: string }) => (a.id < b.id ? -1 : 1)

eachEngine('rows in bulk', (open) => {
  test('bulk rows are stored exactly as given, including unusual values', async () => {
    const store = await open({ books: 'unchecked' })
    const rows = [
      request,
      { ...request, id: 'req_big', cost: nano(9_007_199_254_740_993n), duration_ms: Number.MAX_SAFE_INTEGER },
      { ...request, id: 'req_least', cost: nano(-9_223_372_036_854_775_808n), streamed: false, usage: json(null) },
      { ...request, id: 'req_\'"\\,[]{}', model: 'ü€😀\n\t', key_id: '', hold_id: 'null' },
      { ...request, id: '12', model: 'true', usage: json({ input: 0, output: 0 }) },
    ]
    const given = await store.transaction((tx) => insertNew(tx, 'request', rows))
    expect(given).toBe(rows.length)
    const found = await store.db.selectFrom('request').selectAll().execute()
    const expected = rows.map((row) => ({
      ...row,
      usage: row.usage === null ? null : (JSON.parse(row.usage) as unknown),
    }))
    expect(found.toSorted(byId) as unknown).toEqual(expected.toSorted(byId))
  })

  test('only new rows are inserted, each once, and existing rows stay unchanged', async () => {
    const store = await open()
    const insert = (...ids: string[]) =>
      store.transaction((tx) =>
        insertNew(
          tx,
          'request',
          ids.map((id) => ({ ...request, id, status: ids.length })),
        ),
      )
    expect(await insert('a', 'b')).toBe(2)
    expect(await insert('b', 'c', 'c')).toBe(1)
    expect(await insert('a', 'b', 'c')).toBe(0)
    expect(await insert()).toBe(0)
    const found = await store.db.selectFrom('request').select(['id', 'status']).orderBy('id').execute()
    expect(found).toEqual([
      { id: 'a', status: 2 },
      { id: 'b', status: 2 },
      { id: 'c', status: 3 },
    ])
  })

  test('each of many rows is inserted with its own values, however many exist already', async () => {
    const store = await open({ books: 'unchecked' })
    const known = [0, 1, 99, 100, 123, 249]
    expect(await store.transaction((tx) => insertNew(tx, 'request', rowsOf(known)))).toBe(known.length)
    // Whole blocks, parts of them, and single rows.
    const all = Array.from({ length: 250 }, (_, at) => at)
    const inserted = await store.transaction((tx) => insertNew(tx, 'request', rowsOf(all)))
    expect(inserted).toBe(all.length - known.length)
    const found = await store.db.selectFrom('request').select(['id', 'cost', 'hold_id']).orderBy('cost').execute()
    expect(found).toEqual(all.map((at) => ({ id: `req_${at}`, cost: nano(BigInt(at)), hold_id: `hold_${at}` })))
  })

  test('rows of a transaction that fails are not inserted', async () => {
    const store = await open()
    const failing = store.transaction(async (tx) => {
      await insertNew(tx, 'request', [request])
      throw new Error('on second thoughts')
    })
    expect(failing).rejects.toThrow('second thoughts')
    expect(await store.db.selectFrom('request').selectAll().execute()).toEqual([])
  })
})
