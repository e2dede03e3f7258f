import { expect, test } from 'bun:test'
import type { Outlet } from '../base/pour.ts'
import { Drains } from './drains.ts'
import type { Relay } from './relay.ts'

/** A relay that ends when the test ends or aborts it. */
function waiting() {
  let poured: Outlet | undefined
  let isAborted = false
  const relay = {
    legs: [],
    pour: (outlet: Outlet) => void (poured = outlet),
    pause() {},
    closing: () => new Uint8Array(),
    abort() {
      isAborted = true
      poured?.end()
    },
  } satisfies Relay
  return { relay, end: () => poured?.end(), isAborted: () => isAborted }
}

test('at most 64 streams without a client are drained at once, and each that ends makes room', async () => {
  const drains = new Drains()
  const first = Array.from({ length: 64 }, waiting)
  const runs = first.map(({ relay }) => drains.run(relay))
  const beyond = waiting()
  await drains.run(beyond.relay)
  expect(beyond.isAborted()).toBe(true)
  for (const { end } of first) end()
  await Promise.all(runs)
  const next = waiting()
  const run = drains.run(next.relay)
  expect(next.isAborted()).toBe(false)
  next.end()
  await run
})
