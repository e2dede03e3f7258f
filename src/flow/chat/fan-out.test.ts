import { expect, test } from 'bun:test'
import type { Outlet } from '../../base/pour.ts'
import type { StreamRelay } from '../relay.ts'
import { MergedRelay } from './fan-out.ts'

/** A relay whose vendor always has something more: each time that it is poured, it gives one piece at once. */
function eager(name: string) {
  let left = 100
  const relay = {
    legs: [],
    pour(outlet: Outlet) {
      if (left-- > 0) outlet.take(Buffer.from(name))
      else outlet.end()
    },
    hold() {},
    abort() {},
  }
  return relay as unknown as StreamRelay
}

test('a slow reader is given all choices in turn, not the first two of them', () => {
  const merged = new MergedRelay([eager('a'), eager('b'), eager('c')], undefined as never)
  let given = ''
  for (let wanted = 0; wanted < 6; wanted++) {
    let room = 1 // as the client's body has it: the first is waited for, the second is one too many
    merged.pour({
      take(bytes) {
        given += Buffer.from(bytes).toString()
        if (room-- === 0) merged.hold()
      },
      end() {},
    })
  }
  expect(given).toContain('c')
})
