import { expect, test } from 'bun:test'
import { Closing } from './closing.ts'

function threeRooms() {
  const closing = new Closing(['attic', 'hall', 'cellar'])
  const closed: string[] = []
  const open = (room: 'attic' | 'hall' | 'cellar') => closing.opened(room, () => void closed.push(room))
  return { closing, closed, open }
}

test('steps close in the declared order, not in the order in which they opened', async () => {
  const { closing, closed, open } = threeRooms()
  for (const room of ['cellar', 'attic', 'hall'] as const) open(room)
  await closing.close()
  expect(closed).toEqual(['attic', 'hall', 'cellar'])
})

test('each step waits for the one before it, and steps that never opened are skipped', async () => {
  const { closing, closed, open } = threeRooms()
  const slow = Promise.withResolvers<void>()
  closing.opened('attic', () => slow.promise)
  open('cellar')
  const done = closing.close()
  await Promise.resolve()
  expect(closed).toEqual([])
  slow.resolve()
  await done
  expect(closed).toEqual(['cellar'])
})

test('closing happens once, and a second call waits for the same end', async () => {
  const { closing, closed, open } = threeRooms()
  const slow = Promise.withResolvers<void>()
  closing.opened('attic', () => slow.promise)
  open('hall')
  const ends = [closing.close(), closing.close()].map((end) => end.then(() => closed.push('told')))
  await Promise.resolve()
  expect(closed).toEqual([])
  slow.resolve()
  await Promise.all(ends)
  await closing.close()
  expect(closed).toEqual(['hall', 'told', 'told'])
})

test('a step that fails to close does not keep the others open, and its error is thrown at the end', async () => {
  const { closing, closed, open } = threeRooms()
  const fault = new Error('the hatch is stuck')
  closing.opened('attic', () => Promise.reject(fault))
  open('cellar')
  expect(await closing.close().catch((thrown: unknown) => thrown)).toBe(fault)
  expect(closed).toEqual(['cellar'])
})

test('the errors of all steps that fail to close are reported together', async () => {
  const { closing } = threeRooms()
  for (const room of ['attic', 'hall'] as const) {
    closing.opened(room, () => {
      throw new Error(`the ${room} is stuck`)
    })
  }
  const told = await closing.close().catch((thrown: unknown) => thrown)
  expect(told).toHaveProperty('message', 'Error: the attic is stuck; Error: the hall is stuck')
})

test('opening a step twice or after the end throws', async () => {
  const { closing, open } = threeRooms()
  open('hall')
  expect(() => open('hall')).toThrow('hall is opened twice')
  await closing.close()
  expect(() => open('attic')).toThrow('attic is opened after the end')
})
