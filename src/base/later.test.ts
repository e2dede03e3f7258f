import { expect, test } from 'bun:test'
import { Later } from './later.ts'

test('a value is made when it is first asked for, and only once', async () => {
  let made = 0
  const later = new Later(async () => ++made)
  expect(await later.ifMade()).toBeUndefined()
  expect(made).toBe(0)
  expect(await Promise.all([later.get(), later.get()])).toEqual([1, 1])
  expect(await later.get()).toBe(1)
  expect(await later.ifMade()).toBe(1)
})

test('a value that could not be made is tried again', async () => {
  let tries = 0
  const later = new Later(async () => {
    if (++tries === 1) throw new Error('full')
    return tries
  })
  const both = await Promise.allSettled([later.get(), later.get()])
  expect(both.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(await later.ifMade()).toBeUndefined()
  expect(await later.get()).toBe(2)
})
