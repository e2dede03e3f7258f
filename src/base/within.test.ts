import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { thrownBy } from '../../test/support/thrown.ts'
import { unlessAborted, within } from './within.ts'

const never = new Promise<string>(() => {})

test('work that ends in time keeps its outcome, whether a value or an error', async () => {
  expect(await within(10_000, Promise.resolve('here'))).toBe('here')
  expect(await thrownBy(within(10_000, Promise.reject(new Error('broken'))))).toEqual(new Error('broken'))
})

test('work that is late gives undefined', async () => {
  expect(await within(1, never)).toBeUndefined()
})

test('an abort before or during the wait rejects it with the reason of the abort', async () => {
  const abort = new AbortController()
  const waiting = thrownBy(unlessAborted(abort.signal, never))
  expect(await unlessAborted(abort.signal, Promise.resolve('here'))).toBe('here')
  abort.abort(new Error('enough'))
  expect(await waiting).toEqual(new Error('enough'))
  expect(await thrownBy(unlessAborted(abort.signal, never))).toEqual(new Error('enough'))
})

test('work that ends in time does not keep the process alive until the timeout', () => {
  const script = `import { within } from ${JSON.stringify(join(import.meta.dir, 'within.ts'))}
    await within(60_000, Promise.resolve())`
  const ended = Bun.spawnSync([process.execPath, '-e', script], { timeout: 30_000 })
  expect([ended.exitCode, ended.stderr.toString()]).toEqual([0, ''])
}, 120_000)
