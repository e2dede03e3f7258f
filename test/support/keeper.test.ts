import { expect, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from './gateway.ts'
import { fill } from './keeper.ts'
import { temporaryFolder } from './temporary-folder.ts'
import { thrownBy } from './thrown.ts'

test.each(['runs', 'was stopped', 'was killed'])(
  'the folders of a server that %s are removed after its process was killed with its whole group',
  async (state) => {
    const folders = [temporaryFolder('folder'), temporaryFolder('data')] as const
    const module = JSON.stringify(join(import.meta.dir, 'keeper.ts'))
    const serving = 'process.on("SIGQUIT", () => process.exit()); setInterval(() => {}, 1_000)'
    const server = [process.execPath, '-e', `${serving}; console.error(process.pid)`]
    const script = `
      const { keep } = await import(${module})
      const kept = keep(${JSON.stringify(server)}, ${JSON.stringify(folders)}, {})
      kept.stderr.on('data', (text) => console.log(String(text)))`
    const tests = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', detached: true })
    const { value } = await tests.stdout.getReader().read()
    const pid = Number(Buffer.from(value ?? '').toString())
    if (state === 'was stopped') process.kill(pid, 'SIGSTOP')
    if (state === 'was killed') process.kill(pid, 'SIGKILL')
    expect(folders.every(existsSync)).toBe(true)
    process.kill(-tests.pid, 'SIGKILL')
    await until(() => !folders.some(existsSync))
    expect(() => process.kill(pid, 0)).toThrow('ESRCH')
  },
)

test('folders that are being filled are removed after their process was killed with its whole group', async () => {
  const folders = [temporaryFolder('folder'), temporaryFolder('data')] as const
  const module = JSON.stringify(join(import.meta.dir, 'keeper.ts'))
  const told = join(folders[1], 'pid')
  // It writes to its folder until the very end, as initdb does.
  const filling = `
    const { writeFileSync, renameSync } = require('node:fs')
    process.on('SIGUSR2', () => { writeFileSync(${JSON.stringify(join(folders[1], 'last'))}, ''); process.exit() })
    setInterval(() => {}, 1_000)
    writeFileSync(${JSON.stringify(`${told}.new`)}, String(process.pid))
    renameSync(${JSON.stringify(`${told}.new`)}, ${JSON.stringify(told)})`
  const script = `
    const { fill } = await import(${module})
    await fill(${JSON.stringify([process.execPath, '-e', filling])}, ${JSON.stringify(folders)}, {})`
  const tests = Bun.spawn([process.execPath, '-e', script], { detached: true })
  await until(() => existsSync(told))
  const pid = Number(readFileSync(told, 'utf8'))
  process.kill(-tests.pid, 'SIGKILL')
  await tests.exited
  process.kill(pid, 'SIGUSR2')
  await until(() => !folders.some(existsSync))
})

test('folders that were filled stay once they are released, and those of a command that fails are left alone', async () => {
  const folders = [temporaryFolder('folder'), temporaryFolder('data')] as const
  const filled = await fill(['true'], folders, {})
  await filled.release()
  const failed = await thrownBy(fill(['/bin/sh', '-c', 'echo no room >&2; false'], folders, {}))
  expect(String(failed)).toContain('no room')
  expect(folders.every(existsSync)).toBe(true)
})
