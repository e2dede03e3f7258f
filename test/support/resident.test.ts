import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { compiled } from './compiled.ts'
import { until } from './gateway.ts'
import { temporaryFolder } from './temporary-folder.ts'

test('a gateway that a command left running ends with the process of the tests', async () => {
  const folder = temporaryFolder('resident')
  const variables = { HOME: folder, TURNPIKE_DATA: join(folder, 'data'), PORT: '0', ADMIN_PORT: '0', ...compiled }
  const command = JSON.stringify({ args: ['serve'], variables, folder })
  const script = `
    const { runInResident } = await import(${JSON.stringify(join(import.meta.dir, 'resident.ts'))})
    const { out } = await runInResident(${command})
    require('node:fs').writeFileSync(${JSON.stringify(join(folder, 'out'))}, out)
    process.kill(process.pid, 'SIGKILL')`
  const tests = Bun.spawn([process.execPath, '-e', script], { stdio: ['ignore', 'ignore', 'inherit'] })
  await tests.exited
  const [, url = ''] = /at (http:\S+)\/v1/.exec(readFileSync(join(folder, 'out'), 'utf8')) ?? []
  expect(url).not.toBe('')
  const isAnswered = () =>
    fetch(`${url}/healthz`, { keepalive: false }).then(
      () => true,
      () => false,
    )
  await until(async () => !(await isAnswered()))
})
