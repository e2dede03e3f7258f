import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeCli, type Cli } from '../support/cli.ts'
import { until } from '../support/gateway.ts'
import { payloads } from '../support/streams.ts'

/** Mounts a small disk, which takes root's rights. Without them, only the simulation's disk covers this case. */
function mountSmallDisk(folder: string, mebibytes: number): boolean {
  mkdirSync(folder, { recursive: true })
  return spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${mebibytes}m`, 'tmpfs', folder]).status === 0
}

const canMount = (() => {
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-mount-'))
  const isMounted = mountSmallDisk(folder, 1)
  if (isMounted) spawnSync('umount', [folder])
  rmdirSync(folder)
  return isMounted
})()

describe.skipIf(!canMount)('a disk that fills up under the journal', () => {
  let cli: Cli
  let journal: string
  beforeAll(() => {
    cli = makeCli()
    journal = join(cli.folder, 'data', 'journal')
    // The reserve of 64 MiB, and four for records.
    mountSmallDisk(journal, 68)
  })
  afterAll(async () => {
    await cli.close().catch(() => {})
    spawnSync('umount', [journal])
    rmSync(cli.folder, { recursive: true, force: true })
  })

  test('new requests are refused, a stream under way is settled, and service resumes with free space', async () => {
    const gateway = await cli.serve([], { ADMIN_PORT: '0' })
    expect((await gateway.chat()).status).toBe(200)
    const words = 'A story. sandbox:tokens=300 sandbox:pace=10'
    const slow = gateway
      .chat({ stream: true, messages: [{ role: 'user', content: words }] })
      .then((answer) => answer.text())

    const { bavail, bsize } = statfsSync(journal)
    writeFileSync(join(journal, 'filler'), Buffer.alloc(bavail * bsize))
    // The page that is begun still takes some records.
    let refused: Response | undefined
    for (let tries = 0; tries < 200 && refused === undefined; tries++) {
      const answer = await gateway.chat()
      if (answer.status !== 200) refused = answer
      await answer.text()
    }
    expect(refused?.status).toBe(503)
    expect(refused?.headers.get('retry-after')).not.toBeNull()
    const ready = await fetch(`${gateway.url}/readyz`)
    expect(ready.status).toBe(503)
    expect(payloads(await slow).at(-1)).toBe('[DONE]')

    rmSync(join(journal, 'filler'))
    await until(async () => (await gateway.chat()).status === 200)
    expect((await fetch(`${gateway.url}/readyz`)).status).toBe(200)

    const bill = `${/\((http:\S+)\)/.exec(gateway.output())?.[1]}/__bill`
    const check = () => cli.run(['reconcile', '--bill', bill, '--json'])
    await until(async () => (await check()).code === 0)
    const { matched } = JSON.parse((await check()).out) as { matched: { calls: number } }
    expect(matched.calls).toBeGreaterThan(2)
    gateway.signal('SIGTERM')
    expect(await gateway.exited).toBe(0)
  }, 120_000)
})

// As the kernel does with a disk that fails, and as volumes are mounted by mistake.
test.skipIf(!canMount)(
  'a start on a disk that has become read-only says so, and where',
  async () => {
    const cli = makeCli()
    const data = join(cli.folder, 'data')
    mountSmallDisk(data, 80)
    try {
      const gateway = await cli.serve()
      gateway.signal('SIGTERM')
      expect(await gateway.exited).toBe(0)
      spawnSync('mount', ['-o', 'remount,ro', data])
      const file = join(data, 'turnpike.sqlite')
      const isReadOnly = 'EROFS: read-only file system'
      const refusals = [
        [['serve'], `${data} cannot be used (TURNPIKE_DATA names the folder): Error: ${isReadOnly}`],
        [['accounts', 'list'], `the database ${file} cannot be opened: ${isReadOnly}`],
      ] as const
      for (const [command, says] of refusals) {
        const { code, err } = await cli.run(command)
        expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(says) })
      }
    } finally {
      await cli.close().catch(() => {})
      spawnSync('umount', [data])
      rmSync(cli.folder, { recursive: true, force: true })
    }
  },
  120_000,
)
