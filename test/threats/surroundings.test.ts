import { afterAll, afterEach, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { join } from 'node:path'
import type { Clock } from '../../src/base/clock.ts'
import { makeCli } from '../support/cli.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { startTinyS3 } from '../support/s3.ts'
import { recordOf } from '../support/records.ts'
import { contentOf, payloadsOf, says } from '../support/streams.ts'
import { answer, channelsTo, completion, startVendor, type RawVendor } from '../support/vendor.ts'

const hourMs = 60 * 60_000

describe('the address of a vendor', () => {
  /** A server that must not be called in its place. */
  let attacker: Server
  let attackerUrl: string
  let visits = 0
  let vendor: RawVendor
  let gateway: TestGateway

  beforeAll(async () => {
    attacker = createServer((socket) => {
      visits++
      socket.destroy()
    })
    await new Promise<void>((resolve) => attacker.listen(0, '127.0.0.1', resolve))
    attackerUrl = `http://127.0.0.1:${(attacker.address() as AddressInfo).port}`
    vendor = await startVendor((socket) => void socket.write(answer(200, completion('Hi'))))
    gateway = await startTestGateway({ yaml: channelsTo({ real: vendor }) })
  })
  afterEach(async () => {
    expect(visits).toBe(0)
    await gateway.assertBooks()
  })
  afterAll(async () => {
    await gateway.close()
    await vendor.stop()
    attacker.close()
  })

  const ask = (more: Record<string, unknown> = {}, headers: Record<string, string> = {}) =>
    gateway.post('/v1/chat/completions', says('Hi', { model: 'm', ...more }), headers)

  test('S-01: no field and no header of a request changes the address', async () => {
    const fields = ['api_base', 'base_url', 'baseUrl', 'endpoint', 'host', 'url', 'proxy', 'upstream', 'deployment_url']
    const { host } = new URL(attackerUrl)
    const before = vendor.requests.length
    let answered = 0
    for (const field of fields) {
      for (const more of [{ [field]: attackerUrl }, { metadata: { [field]: attackerUrl } }]) {
        const { status } = await ask(more)
        expect([200, 400]).toContain(status)
        if (status === 200) answered++
      }
    }
    const headers = ['x-upstream-host', 'x-forwarded-host', 'x-openai-host', 'x-base-url', 'x-target-url', 'forwarded']
    for (const header of headers) {
      expect((await ask({}, { [header]: header.endsWith('url') ? attackerUrl : host })).status).toBe(200)
      answered++
    }
    // Every answer came from the vendor of the settings.
    expect(vendor.requests.length - before).toBe(answered)
  })

  test('S-08, K-05: a proxy of the environment is not used, and no process is started', async () => {
    const cli = makeCli()
    try {
      cli.write('turnpike.yaml', channelsTo({ real: vendor }))
      const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy']
      const proxies = Object.fromEntries(names.map((name) => [name, attackerUrl]))
      const served = await cli.serve(['--config', 'turnpike.yaml'], proxies)
      const called = vendor.requests.length
      expect((await served.chat({ model: 'm' })).status).toBe(200)
      expect(vendor.requests.length).toBe(called + 1)
      // Threads share the process id; a child process would have its own, with this one as its parent.
      if (existsSync('/proc/self/stat')) expect(childrenOf(served.pid)).toEqual([])
    } finally {
      await cli.close()
    }
  }, 120_000)
})

test('S-08: a bucket and a bill are fetched directly, without the proxy of the environment', async () => {
  const cli = makeCli()
  const bucket = startTinyS3()
  const proxied: string[] = []
  const proxy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      proxied.push(request.url)
      return new Response(null, { status: 502 })
    },
  })
  const names = ['HTTP_PROXY', 'http_proxy', 'HTTPS_PROXY', 'https_proxy', 'ALL_PROXY', 'all_proxy']
  const variables = Object.fromEntries(names.map((name) => [name, proxy.url.origin]))
  try {
    const place = { endpoint: bucket.endpoint, bucket: 'results', region: 'eu-test' }
    const s3 = { ...place, accessKeyId: 'AKTEST', secretAccessKey: 'a secret of the bucket' }
    cli.write('turnpike.yaml', `artifacts: ${JSON.stringify({ s3 })}\n`)
    const served = await cli.serve(['--config', 'turnpike.yaml'], variables)
    const made = await fetch(`${served.url}/v1/images/generations`, {
      method: 'POST',
      headers: { authorization: `Bearer ${served.key}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-image-1', prompt: 'A fox', response_format: 'url' }),
    })
    expect(made.status).toBe(200)
    expect(bucket.objects.size).toBe(1)
    const bill = `${/simulators answer \((http:\S+)\)/.exec(served.output())?.[1]}/__bill`
    // The gateway runs, and posts what was charged a moment later.
    const reconciled = async () => (await cli.runAlone(['reconcile', '--bill', bill], variables)).out
    await until(async () => (await reconciled()).includes('matched  1 call,'))
    expect(proxied).toEqual([])
  } finally {
    await cli.close()
    await bucket.stop()
    await proxy.stop(true)
  }
}, 60_000)

test('S-08: files in the folder of a start set no variables and run no code', async () => {
  const cli = makeCli()
  try {
    const variables = 'OPENAI_API_KEY=planted\nDATABASE_URL=postgres://planted@127.0.0.1:1/planted\nPORT=none\n'
    for (const name of ['.env', '.env.local', '.env.development', '.env.production']) cli.write(name, variables)
    cli.write('bunfig.toml', 'preload = ["./planted.ts"]\n')
    cli.write('planted.ts', "require('node:fs').writeFileSync('planted.txt', 'it ran')\n")
    const { code, out, err } = await cli.runAlone(['check'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('sandbox: simulators answer')
    expect(out).toContain('turnpike.sqlite')
    expect(existsSync(join(cli.folder, 'planted.txt'))).toBe(false)
  } finally {
    await cli.close()
  }
}, 60_000)

function childrenOf(parent: number): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
      return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent
    } catch {
      return false // it has ended meanwhile
    }
  })
}

describe('F-09: a clock that jumps by hours', () => {
  test.each(['strict', 'leased'] as const)(
    'a jump during a stream ends nothing early and charges once, in %s mode',
    async (mode) => {
      let ahead = 0
      // Only the time of day jumps: durations are measured by the monotonic clock.
      const clock: Clock = { now: () => Date.now() + ahead, monotonic: () => performance.now() }
      const gateway = await startTestGateway({ clock, mode })
      try {
        const { id, key } = await gateway.account({ dollars: '1' })
        const ask = (words: string, more = {}) =>
          gateway.post('/v1/chat/completions', says(words, more), { authorization: `Bearer ${key}` })
        let cost = 0n
        for (const jumpMs of [hourMs, -2 * hourMs]) {
          const response = await ask('Hello! sandbox:tokens=10 sandbox:pace=200', { stream: true })
          expect(gateway.openHolds()).toBe(1)
          ahead += jumpMs
          const events = await payloadsOf(response)
          expect(contentOf(events)).not.toBe('')
          expect(events.at(-1)).toBe('[DONE]')
          const record = await recordOf(gateway, response)
          expect(record).toMatchObject({ status: 200, basis: 'vendor' })
          cost += record.cost
        }
        // The next request is served as usual.
        const next = await ask('Hello!')
        expect(next.status).toBe(200)
        cost += (await recordOf(gateway, next)).cost
        await until(() => gateway.openHolds() === 0)
        const { posted, held } = await gateway.balance(id)
        expect([1_000_000_000n - posted, held as bigint]).toEqual([cost, 0n])
        await gateway.assertBooks()
      } finally {
        await gateway.close()
      }
    },
  )

  test.each([
    { aheadMs: 5 * 60_000, says: [300] },
    { aheadMs: -5 * 60_000, says: [-300] },
    { aheadMs: 0, says: [] },
  ])(
    'a node that starts $aheadMs ms ahead of its database logs the difference: $says',
    async ({ aheadMs, says: told }) => {
      const clock: Clock = { now: () => Date.now() + aheadMs, monotonic: () => performance.now() }
      const gateway = await startTestGateway({ clock, engine: 'postgres' })
      const lines = gateway.logged.filter((line) => line.includes('clock'))
      await gateway.close()
      const seconds = lines.map((line) => (JSON.parse(line) as { aheadSeconds: number }).aheadSeconds)
      expect(seconds.map((one) => Math.round(one / 10) * 10)).toEqual([...told])
    },
  )
})
