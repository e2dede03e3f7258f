import { expect, test } from 'bun:test'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'

/** Logs more than is buffered for a reader, reports that, and logs one more line once the buffer has been read. */
const busy = `
  import { makeLog } from ${JSON.stringify(join(import.meta.dir, 'log.ts'))}
  const log = makeLog({ level: 'info' })
  const text = 'x'.repeat(10_000)
  for (let at = 0; at < 4_000; at++) log.info({ text }, 'a line')
  process.stdout.write('{}\\n', () => log.info({}, 'the last line'))
  process.stderr.write('written')
`

test('a log that is not read stays bounded, and reports its lost lines once it is read again', async () => {
  const { stdout, stderr } = spawn(process.execPath, ['-e', busy], { stdio: ['ignore', 'pipe', 'pipe'] })
  await once(stderr, 'data')
  let bytes = 0
  let last = ''
  for await (const piece of stdout as AsyncIterable<Uint8Array>) {
    bytes += piece.length
    last = (last + Buffer.from(piece).toString()).slice(-1_000)
  }
  const [lost, end] = last
    .trim()
    .split('\n')
    .slice(-2)
    .map((line) => JSON.parse(line) as { lines?: number; msg: string })
  expect(end?.msg).toBe('the last line')
  expect(lost?.msg).toBe('log lines could not be written and are lost')
  expect(lost?.lines).toBeGreaterThan(1_000)
  expect(bytes).toBeLessThan(32 * 1024 * 1024)
}, 60_000)
