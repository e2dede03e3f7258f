import { expect, test } from 'bun:test'
import { freePort } from './free-port.ts'

test('no port is given twice, though none of their servers listens yet', async () => {
  const count = 600
  const ports = new Set<number>()
  for (let asked = 0; asked < count; asked++) ports.add(await freePort())
  expect(ports.size).toBe(count)
})
