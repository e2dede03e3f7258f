import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCli, type Cli, type Served } from '../support/cli.ts'
import { freePort } from '../support/free-port.ts'
import type { BillLine } from '../support/gateway.ts'

// Every start is a process of its own, and machines that test are busy.
setDefaultTimeout(120_000)

/** Each in a folder of its own, so that they run side by side: all that they wait for is videos. */
async function alone(work: (cli: Cli) => Promise<void>): Promise<void> {
  const cli = makeCli()
  try {
    await work(cli)
  } finally {
    await cli.close()
  }
}

/** One model of every vendor of videos; a model that needs an image is given one. */
const image = { media: [{ type: 'first_frame', url: 'https://example.com/a.png' }] }
const videos: readonly (readonly [model: string, more: object])[] = [
  ['wan2.6-t2v', {}],
  ['doubao-seedance-1-5-pro-251215', {}],
  ['veo-3.1-generate-preview', {}],
  ['kling-v2-6', {}],
  ['minimax-hailuo-02', {}],
  ['gen4-turbo', image],
  ['viduq3-turbo', {}],
  ['pixverse-v6', {}],
  ['sora-2', {}],
]
type Video = {
  readonly id: string
  readonly model: string
  readonly status: string
  readonly content?: { readonly video_url: string | null }
}

/** A gateway as its user sees it: with the key of the first start, and the simulators where the greeting says. */
function using(served: Served, key = served.key) {
  const simulators = /simulators answer \((\S+)\)/.exec(served.output())?.[1] ?? 'nowhere'
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  const at = `${served.url}/v1/videos/generations`
  const read = async (id: string) => (await (await fetch(`${at}/${id}`, { headers })).json()) as Video
  return {
    simulators,
    read,
    async order(model: string, prompt: string, more: object = {}): Promise<string> {
      const body = JSON.stringify({ model, input: { prompt, ...more } })
      const response = await fetch(at, { method: 'POST', headers, body })
      if (!response.ok) throw new Error(`${model}: ${await response.text()}`)
      return ((await response.json()) as Video).id
    },
    async comesTo(id: string, status: string): Promise<Video> {
      for (;;) {
        const video = await read(id)
        if (video.status === status) return video
        if (['succeeded', 'failed'].includes(video.status)) throw new Error(JSON.stringify(video))
        await Bun.sleep(50)
      }
    },
    bill: async () => ((await (await fetch(`${simulators}/__bill`)).json()) as { data: BillLine[] }).data,
  }
}

const isVideo = async (link: string | null | undefined) =>
  (await fetch(link ?? 'http://127.0.0.1:1')).headers.get('content-type') === 'video/mp4'

/** Of every vendor one video that is ready and one that is being made, and then a chat. */
async function beginBusy(user: ReturnType<typeof using>, served: Served) {
  const make = (prompt: string, status: string) =>
    Promise.all(
      videos.map(async ([model, more]) =>
        user.comesTo(await user.order(model, `A secret fox. ${prompt}`, more), status),
      ),
    )
  const ready = await make('', 'succeeded')
  const running = await make('sandbox:queued=0 sandbox:slow=6000', 'running')
  expect((await served.chat()).status).toBe(200)
  return { ready, running }
}

/** The first start is given a port that no outgoing connection takes meanwhile; the second start finds it by itself. */
async function serveFirst(cli: Cli): Promise<Served> {
  return cli.serve([], { SANDBOX_PORT: String(await freePort()) })
}

async function goesOn(cli: Cli, end: 'SIGTERM' | 'SIGKILL'): Promise<void> {
  const first = await serveFirst(cli)
  const before = using(first)
  const { ready, running } = await beginBusy(before, first)
  process.kill(first.pid, end)
  await first.exited

  const second = await cli.serve()
  const after = using(second, first.key)
  expect(after.simulators).toBe(before.simulators)
  for (const video of ready) expect(await after.read(video.id)).toEqual(video)
  const made = await Promise.all(running.map(({ id }) => after.comesTo(id, 'succeeded')))
  for (const { model, content } of [...ready, ...made]) {
    // Videos of Veo and Sora are kept by the gateway, whose port changes with each start in tests alone.
    const link = content?.video_url?.replace(first.url, second.url)
    expect([model, await isVideo(link)]).toEqual([model, true])
  }
  const bill = await after.bill()
  expect(bill).toHaveLength(2 * videos.length + 1)
  expect(new Set(bill.map(({ ref }) => ref)).size).toBe(bill.length)

  second.signal('SIGTERM')
  await second.exited
  // With both gateways stopped nothing is held, so that all of the ledger can be compared.
  cli.write('bill.csv', ['ref,cost', ...bill.map(({ ref, cost }) => `${ref},${cost}`)].join('\n'))
  const { code, out } = await cli.run(['reconcile', '--vendor-export', 'bill.csv'])
  expect([code, out]).toEqual([0, expect.any(String) as never])
  const folder = join(cli.folder, 'data', 'sandbox')
  for (const name of readdirSync(folder)) expect(readFileSync(join(folder, name), 'utf8')).not.toContain('secret')
}

async function takesAnotherPort(cli: Cli): Promise<void> {
  const first = await serveFirst(cli)
  const before = using(first)
  const id = await before.order('wan2.6-t2v', 'A fox. sandbox:slow=6000')
  await before.comesTo(id, 'running')
  process.kill(first.pid, 'SIGKILL')
  await first.exited
  const { port } = new URL(before.simulators)
  const taken = Bun.serve({ hostname: '127.0.0.1', port, fetch: () => new Response('not yours', { status: 418 }) })
  try {
    const after = using(await cli.serve(), first.key)
    expect(after.simulators).not.toBe(before.simulators)
    const { content } = await after.comesTo(id, 'succeeded')
    expect(content?.video_url).toStartWith(after.simulators)
    expect(await isVideo(content?.video_url)).toBe(true)
  } finally {
    await taken.stop(true)
  }
}

describe('a restart of a gateway with its simulators', () => {
  test.concurrent.each(['SIGTERM', 'SIGKILL'] as const)(
    'after %s every video is still completed, and each is charged once',
    (end) => alone((cli) => goesOn(cli, end)),
  )

  test.concurrent('simulators whose port is taken use another one, and a running video still completes', () =>
    alone(takesAnotherPort))
})
