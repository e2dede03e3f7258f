import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { until } from './gateway.ts'
import { temporaryFolder } from './temporary-folder.ts'

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
