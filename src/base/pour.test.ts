import { expect, test } from 'bun:test'
import { GatewayError } from './errors.ts'
import { Pump, type Outlet } from './pour.ts'

const settled = () => Bun.sleep(0)

/** An outlet that notes everything it is given and calls `after` with the count after each piece. */
function noting(after: (taken: number) => void = () => {}) {
  const noted: (number | string)[] = []
  const outlet: Outlet = {
    take(bytes) {
      noted.push(...bytes)
      after(noted.length)
    },
    end: (failure) => noted.push(failure?.kind ?? 'end'),
  }
  return { noted, outlet }
}

/** A pump that makes the bytes 1, 2, 3 and so on, up to `last`. */
function counting(last: number) {
  let made = 0
  const next = async () => (made === last ? undefined : Uint8Array.of(++made))
  return { pump: new Pump(next), made: () => made }
}

test('a pump pours all its pieces, and then the end', async () => {
  const { noted, outlet } = noting()
  counting(3).pump.pour(outlet)
  await settled()
  expect(noted).toEqual([1, 2, 3, 'end'])
})

test('a paused pump makes nothing until it is poured again', async () => {
  const { pump, made } = counting(9)
  const { noted, outlet } = noting((taken) => {
    if (taken === 2) pump.pause()
  })
  pump.pour(outlet)
  await settled()
  expect([made(), noted]).toEqual([2, [1, 2]])
  pump.pour(outlet)
  await settled()
  expect(noted).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 'end'])
})

test('a piece that is being made when the pump is paused is not lost', async () => {
  const { pump } = counting(2)
  const { noted, outlet } = noting()
  pump.pour(outlet)
  pump.pause()
  await settled()
  expect(noted).toEqual([])
  pump.pour(outlet)
  await settled()
  expect(noted).toEqual([1, 2, 'end'])
})

test('a pump that is poured into another outlet continues there', async () => {
  const { pump } = counting(3)
  const other = noting()
  const { noted, outlet } = noting((taken) => {
    if (taken === 1) pump.pour(other.outlet)
  })
  pump.pour(outlet)
  await settled()
  expect([noted, other.noted]).toEqual([[1], [2, 3, 'end']])
})

test('a source that fails ends the outlet with its failure, once', async () => {
  const { noted, outlet } = noting()
  new Pump(() => Promise.reject(new GatewayError('upstream-failed', 'broken'))).pour(outlet)
  await settled()
  expect(noted).toEqual(['upstream-failed'])
})
