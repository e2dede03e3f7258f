import { describe, expect, test } from 'bun:test'
import { z } from 'zod'
import { thrownBy } from '../../test/support/thrown.ts'
import { pageFields, pageOf, readQuery, rowsFor } from './query.ts'

const listed = z.strictObject(pageFields)
const read = async (query: string) => readQuery(new Request(`http://gateway/list?${query}`), listed)

const show = (ids: readonly number[], limit: number) =>
  pageOf(
    ids,
    limit,
    (id) => id * 10,
    (id) => id,
  )
const find = async (id: string) => (id === 'known' ? { id } : undefined)

describe('the query of a list', () => {
  test.each(['limit=0', 'limit=101', 'limit=1.5', 'limit=-1', 'limit=', 'limit=ten', 'limit=1&limit=2'])(
    '%s is refused',
    async (query) => {
      expect(await thrownBy(read(query))).toMatchObject({ kind: 'bad-request', details: { param: 'limit' } })
    },
  )

  test('a limit may be from 1 to 100, and is 20 if it is absent', async () => {
    expect(await read('limit=1')).toEqual({ limit: 1 })
    expect(await read('limit=100&after=a')).toEqual({ limit: 100, after: 'a' })
    expect(await read('')).toEqual({ limit: 20 })
  })

  test('an unknown parameter is refused by its name', async () => {
    expect(await thrownBy(read('acount=acme'))).toMatchObject({ kind: 'bad-request', details: { param: 'acount' } })
  })
})

describe('a page', () => {
  test('has as many entries as were asked for, and the last one as the place of the next page', () => {
    expect(show([1, 2, 3], 2)).toEqual({ data: [10, 20], next: '2' })
  })

  test('is the last one if nothing follows it, even if it is full', () => {
    expect(show([1, 2], 2)).toEqual({ data: [10, 20], next: null })
    expect(show([1], 2)).toEqual({ data: [10], next: null })
    expect(show([], 2)).toEqual({ data: [], next: null })
  })

  test('is looked up with one row more than it shows, after a place that exists', async () => {
    expect(await rowsFor({ limit: 2 }, 'task', find)).toEqual({ limit: 3 })
    expect(await rowsFor({ limit: 2, after: 'known' }, 'task', find)).toEqual({ limit: 3, before: { id: 'known' } })
    expect(await thrownBy(rowsFor({ limit: 2, after: 'gone' }, 'task', find))).toMatchObject({
      kind: 'bad-request',
      message: "There is no such task, or not any more. Begin again without 'after'.",
      details: { param: 'after' },
    })
  })
})
