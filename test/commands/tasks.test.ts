import { afterAll, beforeAll, expect, test } from 'bun:test'
import { makeCli, type Cli } from '../support/cli.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'

let gateway: TestGateway
let cli: Cli
beforeAll(async () => {
  gateway = await startTestGateway({ mode: 'leased' })
  cli = makeCli({ data: gateway.folder })
})
afterAll(async () => {
  await cli.close()
  await gateway.assertBooks()
  await gateway.close()
})

type Shown = { id: string; state: string; model: string }

test('tasks are listed, shown, and watched to their end', async () => {
  const order = async (prompt: string) => {
    const body = { model: 'wan2.6-t2v', duration: 5, resolution: '720p', input: { prompt } }
    return ((await (await gateway.post('/v1/videos/generations', body)).json()) as Shown).id
  }
  const made = await order('A fox. sandbox:slow=2500')
  const failed = await order('A fox. sandbox:fail=DataInspectionFailed')

  const watched = await cli.run(['tasks', 'watch', made])
  expect([watched.code, watched.err]).toEqual([0, ''])
  const states = watched.out
    .trim()
    .split('\n')
    .map((line) => line.split(' ')[2])
  expect(states.at(-1)).toBe('succeeded')
  expect(new Set(states).size).toBe(states.length)
  const lost = await cli.run(['tasks', 'watch', failed])
  expect([lost.code, lost.out.includes('DataInspectionFailed')]).toEqual([1, true])

  const { data } = await cli.json<{ data: Shown[] }>(['tasks', 'list'])
  expect(data.map(({ id, state }) => [id, state])).toEqual([
    [failed, 'failed'],
    [made, 'succeeded'],
  ])
  const table = await cli.run(['tasks', 'list', '--state', 'failed'])
  expect(table.out).toMatch(/^TIME +ACCOUNT +MODEL +STATE /)
  expect(table.out).toContain(failed)
  expect(table.out).not.toContain(made)
  for (const others of [['--in-doubt'], ['--model', 'wan2.6-i2v']]) {
    expect((await cli.run(['tasks', 'list', ...others])).out).toBe('No tasks were found in sandbox mode.\n')
  }
  const shown = async (id: string) => (await cli.run(['tasks', 'show', id])).out
  expect(await shown(made)).toMatch(/^held +-\ncost +\$0\.5$/m)
  expect(await shown(made)).toMatch(/^account +acc_\w+ \(demo\)\nkey +key_\w+ \(first, sk-…[\w-]{4}\)$/m)
  expect(await shown(failed)).toMatch(/^cost +\$0$/m)
  const err = 'turnpike: there is no task "vid_0"; turnpike tasks list shows their ids\n'
  expect(await cli.run(['tasks', 'show', 'vid_0'])).toEqual({ code: 1, out: '', err })
  // Settings that cannot be read stop no command that needs none.
  cli.write('turnpike.yaml', 'channels: none')
  expect((await cli.run(['tasks', 'show', made])).out).toMatch(/state +succeeded/)
}, 120_000)
