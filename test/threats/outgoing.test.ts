import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createServer, type AddressInfo, type Server } from 'node:net'
import { join } from 'node:path'
import { makeGuardedFetch } from '../../src/base/guarded-fetch.ts'
import { GuardRefusal } from '../../src/base/untrusted-url.ts'
import { openBlackhole } from '../support/blackhole.ts'
import { listenAlike } from '../support/listen-alike.ts'
import { makeCli, type Cli } from '../support/cli.ts'
import { copyProgram } from '../support/copied-program.ts'
import { startTestGateway } from '../support/gateway.ts'
import { answer, completion, startVendor } from '../support/vendor.ts'

setDefaultTimeout(120_000)

/** A server on this machine's own network, which must never be connected to. */
let server: Server
let port: number
let visits = 0

beforeAll(async () => {
  server = createServer((socket) => {
    visits++
    socket.destroy()
  })
  // Every address of this machine, by both families.
  await new Promise<void>((resolve) => server.listen(0, '::', resolve))
  port = (server.address() as AddressInfo).port
})
afterEach(() => expect(visits).toBe(0))
afterAll(() => {
  server.close()
})

const limits = { bytesMax: 1024, connectMs: 10_000, totalMs: 20_000 }

async function refusal(work: Promise<unknown>): Promise<GuardRefusal> {
  const thrown = await work.catch((error: unknown) => error)
  if (!(thrown instanceof GuardRefusal)) throw new Error(`not refused: ${String(thrown)}`)
  return thrown
}

// S-02, S-03; S-04 to S-07 with resolvers and servers of the test's own: `src/base/guarded-fetch.test.ts`.
describe('a URL into this network', () => {
  // The system's own resolver and the runtime as it is: nothing is replaced by a stand-in here.
  const guard = makeGuardedFetch({ schemes: 'https-and-http', ports: 'any' })

  test.each([
    ['names of this machine', ['localhost', 'LocalHost', 'localhost.', 'LOCALHOST.']],
    ['addresses of this machine', ['127.0.0.1', '127.0.0.2', '127.255.255.254', '127.0.0.1.', '127.1', '127.0.1']],
    [
      'other spellings of 127.0.0.1',
      ['2130706433', '0x7f000001', '0x7f.0.0.1', '0177.0.0.1', '017700000001', '①②⑦.⓪.⓪.①', '127。0。0。1'],
    ],
    ['the unspecified address', ['0', '0.0.0.0', '0x0', '00']],
    ['private networks', ['10.0.0.1', '172.16.0.1', '192.168.0.1', '100.64.0.1', '198.18.0.1']],
    [
      'metadata servers',
      ['169.254.169.254', '169.254.170.2', '100.100.100.200', '192.0.0.192', '168.63.129.16', '0xa9fea9fe'],
    ],
    ['multicast, broadcast and reserved addresses', ['224.0.0.1', '255.255.255.255', '240.0.0.1']],
    ['this machine by IPv6', ['[::1]', '[::]', '[0:0:0:0:0:0:0:1]', '[::127.0.0.1]']],
    ['IPv4-mapped addresses', ['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[::ffff:0:7f00:1]']],
    [
      'IPv4 addresses embedded in IPv6',
      ['[64:ff9b::7f00:1]', '[64:ff9b:1::7f00:1]', '[2002:7f00:1::]', '[2001:0:53aa:64c::1]'],
    ],
    [
      'link-local, site-local and unique local addresses',
      ['[fe80::1]', '[fe80::1%25lo]', '[fec0::1]', '[fd00:ec2::254]', '[fc00::1]', '[ff02::1]'],
    ],
    [
      'user names and escapes that hide the host',
      ['user@127.0.0.1', 'a.test@127.0.0.1', '127.0.0.1\\@a.test', '%6c%6f%63alhost', 'loc\talhost'],
    ],
  ])('a URL is refused without a connection: %s', async (_name, hosts) => {
    for (const host of hosts) {
      for (const scheme of ['http', 'https']) {
        const url = `${scheme}://${host}:${port}/`
        const { message, details } = await refusal(guard.get(url, limits))
        await refusal(guard.check(url))
        await refusal(guard.post(url, { headers: {}, body: '{}' }, limits))
        expect({ url, code: details.code }).toEqual({ url, code: 'invalid_url' })
        expect(message).not.toMatch(/\d/)
      }
    }
  })

  test('other schemes and ports are refused by default', async () => {
    const strict = makeGuardedFetch()
    const bad = [
      `https://8.8.8.8:${port}/`,
      'https://8.8.8.8:25/',
      'http://8.8.8.8/',
      'gopher://8.8.8.8/',
      'file:///etc/passwd',
    ]
    for (const url of bad) expect((await refusal(strict.get(url, limits))).reason).toMatch(/^(?:port|scheme)$/)
  })
})

test('S-04: a name that resolves outside and inside in turn is never followed inside', async () => {
  const [outsideAddress, insideAddress] = ['127.0.0.2', '127.0.0.1']
  const seen = { outside: 0, inside: 0 }
  const outside = createServer((socket) => {
    seen.outside++
    socket.end('HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi')
  })
  const inside = createServer((socket) => {
    seen.inside++
    socket.destroy()
  })
  await listenAlike([outside, outsideAddress], [inside, insideAddress])
  const { port: shared } = outside.address() as AddressInfo
  try {
    let lookups = 0
    const guard = makeGuardedFetch(
      { schemes: 'https-and-http', ports: 'any' },
      {
        isPublic: (address) => address === outsideAddress,
        resolve: () => Promise.resolve([lookups++ % 2 === 0 ? outsideAddress : insideAddress]),
      },
    )
    const fetches = 1_000
    let answered = 0
    for (let at = 0; at < fetches; at += 50) {
      const some = Array.from({ length: 50 }, () => guard.get(`http://rebinding.test:${shared}/`, limits))
      answered += (await Promise.allSettled(some)).filter(({ status }) => status === 'fulfilled').length
    }
    expect({ lookups, answered, ...seen }).toEqual({
      lookups: fetches,
      answered: fetches / 2,
      outside: fetches / 2,
      inside: 0,
    })
  } finally {
    outside.close()
    inside.close()
  }
})

test('a fetch from a host that does not answer ends at its connect timeout', async () => {
  const blackhole = await openBlackhole()
  try {
    const guard = makeGuardedFetch({ schemes: 'https-and-http', addresses: 'loopback', ports: 'any' })
    // A fetch that runs out of its total time has another reason.
    expect((await refusal(guard.get(blackhole.baseUrl, { ...limits, connectMs: 100 }))).reason).toBe('unreachable')
  } finally {
    blackhole.close()
  }
})

// D-05
describe('a start with a broken guard or another runtime', () => {
  let cli: Cli
  beforeEach(() => {
    cli = makeCli({ installed: copyProgram('spoilt') }) // a bundle would have its own copy of what is spoilt
  })
  afterEach(() => cli.close())

  test('a start is refused in one line if the guard lets this machine through', async () => {
    // As a later version of a package might come to see it.
    const installed = JSON.stringify(join(import.meta.dir, '../../node_modules/ipaddr.js'))
    cli.write('spoilt.ts', `import ipaddr from ${installed}\nipaddr.IPv4.prototype.range = () => 'unicast'\n`)
    const { code, out, err } = await cli.runAlone(['serve'], {
      BUN_OPTIONS: `--preload=${join(cli.folder, 'spoilt.ts')}`,
    })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err.trimEnd().split('\n')).toEqual([
      expect.stringMatching(
        /^turnpike: the guard against URLs into this network does not work here \(\S+ is not refused\)/,
      ),
    ])
  })

  test('a start is refused in one line on a runtime other than the tested one', async () => {
    cli.write('other.ts', "Object.defineProperty(process.versions, 'bun', { value: '1.0.0' })\n")
    const { code, out, err } = await cli.runAlone(['serve'], {
      BUN_OPTIONS: `--preload=${join(cli.folder, 'other.ts')}`,
    })
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err.trimEnd().split('\n')).toEqual([
      expect.stringMatching(/^turnpike: Turnpike runs on Bun \S+, this is 1\.0\.0/),
    ])
  })
})

// S-02: a model server fetches the links in what it is asked.
test.each(['compatible', 'vllm', 'llamacpp'])('a %s server on our own network is sent no link', async (vendorId) => {
  const vendor = await startVendor((socket) => void socket.write(answer(200, completion('Hi'))))
  const prices = { inputPerMillion: '1', outputPerMillion: '10' }
  const settings = {
    sandbox: false,
    channels: [{ id: 'main', vendor: vendorId, baseUrl: vendor.baseUrl, keys: ['k'] }],
    models: [{ id: 'm', capability: 'chat', channels: [{ channel: 'main' }], prices }],
  }
  const yaml = Object.entries(settings).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
  const gateway = await startTestGateway({ yaml: yaml.join('\n') })
  try {
    const ask = (path: string, part: object, fields: object = {}) => {
      const messages = [{ role: 'user', content: [part] }]
      return gateway.post(path, { model: 'm', max_tokens: 9, messages, ...fields })
    }
    const url = `https://localhost:${port}/`
    const linked = { type: 'image_url', image_url: { url } }
    const source = { type: 'image', source: { type: 'url', url } }
    const refusals = [
      ask('/v1/chat/completions', linked),
      ask('/v1/chat/completions', linked, { n: 2, stream: true }),
      ask('/v1/chat/completions', { type: 'video_url', video_url: { url: `http://127.0.0.1:${port}/a.mp4` } }),
      ask('/v1/chat/completions', { type: 'video', video: ['data:image/png;base64,AA', url] }),
      ask('/v1/messages', source),
      gateway.post('/v1/responses', {
        model: 'm',
        input: [{ role: 'user', content: [{ type: 'input_image', image_url: url }] }],
      }),
    ]
    for (const refused of await Promise.all(refusals)) {
      expect([refused.status, await refused.text()]).toEqual([400, expect.stringMatching(/The host|The URL/)] as never)
    }
    expect(vendor.requests).toEqual([])

    const inline = { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } }
    expect((await ask('/v1/chat/completions', inline)).status).toBe(200)
    expect(vendor.requests.map(({ body }) => body['messages'])).toEqual([[{ role: 'user', content: [inline] }]])
    await gateway.assertBooks()
  } finally {
    await gateway.close()
    await vendor.stop()
  }
})

const asMessage = (block: object) => ({ model: 'm', max_tokens: 99, messages: [{ role: 'user', content: [block] }] })
const asItem = (item: object) => ({ model: 'm', input: [item] })

test.each(['anthropic', 'openai'])(
  'S-02: an %s server on our own network is sent no link in a request that passes through',
  async (vendorId) => {
    const vendor = await startVendor((socket) => void socket.write(answer(200, completion('Hi'))))
    const prices = { inputPerMillion: '1', outputPerMillion: '10' }
    const baseUrl = vendorId === 'anthropic' ? vendor.origin : vendor.baseUrl
    const settings = {
      sandbox: false,
      channels: [{ id: 'main', vendor: vendorId, baseUrl, keys: ['k'] }],
      models: [{ id: 'm', capability: 'chat', reasoning: true, channels: [{ channel: 'main' }], prices }],
    }
    const yaml = Object.entries(settings).map(([name, value]) => `${name}: ${JSON.stringify(value)}`)
    const gateway = await startTestGateway({ yaml: yaml.join('\n') })
    try {
      const url = `https://localhost:${port}/`
      const source = { type: 'url', url }
      const nested = { type: 'tool_result', tool_use_id: 't', content: [{ type: 'document', source }] }
      const output = [{ type: 'input_file', file_url: url }]
      const refusals = [
        gateway.post('/v1/messages', asMessage({ type: 'image', source })),
        gateway.post('/v1/messages', asMessage(nested)),
        gateway.post('/v1/responses', asItem({ role: 'user', content: [{ type: 'input_image', image_url: url }] })),
        gateway.post('/v1/responses', asItem({ type: 'function_call_output', call_id: 'c', output })),
      ]
      for (const refused of await Promise.all(refusals)) {
        expect([refused.status, await refused.text()]).toEqual([
          400,
          expect.stringMatching(/The host|The URL/),
        ] as never)
      }
      const { max_tokens: _, ...counted } = asMessage({ type: 'image', source })
      expect((await gateway.post('/v1/messages/count_tokens', counted)).status).toBe(200)
      expect(vendor.requests).toEqual([])
      await gateway.assertBooks()
    } finally {
      await gateway.close()
      await vendor.stop()
    }
  },
)
