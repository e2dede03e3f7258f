import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { thrownBy } from '../../test/support/thrown.ts'
import { unlessAborted, within } from './within.ts'

const never = new Promise<string>(() => {})

test('what comes in time is what came, good or bad', async () => {
  expect(await within(10_000, Promise.resolve('here'))).toBe('here')
  expect(await thrownBy(within(10_000, Promise.reject(new Error('broken'))))).toEqual(new Error('broken'))
})

test('nobody waits for what is late', async () => {
  expect(await within(1, never)).toBeUndefined()
})

test('who aborts is not kept waiting, and is heard before and after it began', async () => {
  const abort = new AbortController()
  const waiting = thrownBy(unlessAborted(abort.signal, never))
  expect(await unlessAborted(abort.signal, Promise.resolve('here'))).toBe('here')
  abort.abort(new Error('enough'))
  expect(await waiting).toEqual(new Error('enough'))
  expect(await thrownBy(unlessAborted(abort.signal, never))).toEqual(new Error('enough'))
})

test('what came in time keeps no process waiting for the rest of it', () => {
  const script = `import { within } from ${JSON.stringify(join(import.meta.dir, 'within.ts'))}
    await within(60_000, Promise.resolve())`
  const ended = Bun.spawnSync([process.execPath, '-e', script], { timeout: 30_000 })
  expect([ended.exitCode, ended.stderr.toString()]).toEqual([0, ''])
}, 120_000)
