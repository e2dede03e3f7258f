import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { until } from './gateway.ts'

test('temporary folders are removed after their process, even if that was killed with its whole group', async () => {
  const module = JSON.stringify(join(import.meta.dir, 'temporary-folder.ts'))
  const script = `
    const { temporaryFolder } = await import(${module})
    console.log(temporaryFolder('one'))
    setInterval(() => {}, 1_000)`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', detached: true })
  const { value } = await child.stdout.getReader().read()
  const folder = Buffer.from(value ?? '')
    .toString()
    .trim()
  expect(existsSync(folder)).toBe(true)
  process.kill(-child.pid, 'SIGKILL')
  await until(() => !existsSync(dirname(folder)))
})
