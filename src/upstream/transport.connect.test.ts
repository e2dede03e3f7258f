import { afterEach, describe, expect, test } from 'bun:test'
import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { openBlackhole } from '../../test/support/blackhole.ts'
import {
  certificate,
  certificateKey,
  localCertificate,
  localKey,
  pastCertificate,
} from '../../test/support/certificate.ts'
import { freePort } from '../../test/support/free-port.ts'
import { movableClock } from '../../test/support/movable-clock.ts'
import { answer } from '../../test/support/vendor.ts'
import {
  noUnheardRejections,
  openTransport,
  startWire,
  type Asked,
  type Line,
  type Wire,
} from '../../test/support/wire.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'

noUnheardRejections()

const started: { stop(): unknown }[] = []
afterEach(async () => {
  for (const one of started.splice(0)) await one.stop()
})

async function start(...habits: Parameters<typeof startWire>): Promise<Wire> {
  const wire = await startWire(...habits)
  started.push(wire)
  return wire
}

/** A server that accepts connections and never sends a byte, so that no TLS handshake succeeds. */
async function startMute() {
  const wire = await start({})
  return { wire, url: wire.url.replace('http:', 'https:') }
}

describe('a vendor that cannot be reached', () => {
  test('a refused connection fails the call with nothing sent', async () => {
    const port = await freePort()
    for (const url of [`http://127.0.0.1:${port}`, `https://localhost:${port}`, `http://[::1]:${port}`]) {
      expect(await openTransport().failure(url)).toBe('upstream-failed, unsent')
    }
  })

  test.each([
    'http://nobody.invalid/',
    'https://nobody.invalid/',
    'http://127.0.0.1:0/',
    'ftp://127.0.0.1/',
    'not an address',
    '',
  ])('a call to %j fails with nothing sent', async (url) => {
    expect(await openTransport().failure(url)).toBe('upstream-failed, unsent')
  })

  test('a connect without a reply times out after connectMs, and ends when the client leaves', async () => {
    const blackhole = await openBlackhole()
    started.push({ stop: () => blackhole.close() })
    const startedAt = performance.now()
    const timeouts = { connectMs: 60 }
    const kinds = ['kept', 'new'] as const
    const failures = kinds.map((connection) => openTransport().failure(blackhole.baseUrl, { timeouts, connection }))
    expect(await Promise.all(failures)).toEqual(['upstream-timeout, unsent', 'upstream-timeout, unsent'])
    // All other timeouts of these calls are twenty seconds.
    expect(performance.now() - startedAt).toBeLessThan(10_000)
    // A client that leaves does not have to wait for that.
    const client = new AbortController()
    const left = openTransport().failure(blackhole.baseUrl, { signal: client.signal })
    client.abort()
    expect(await left).toBe('client-gone, unsent')
  })

  test('a TLS handshake that never completes times out with nothing sent', async () => {
    const { wire, url } = await startMute()
    const clock = movableClock()
    const failed = openTransport(clock).failure(url, { timeouts: { connectMs: 3_000 } })
    await wire.line(0)
    clock.advance(3_001)
    expect(await failed).toBe('upstream-timeout, unsent')
  })

  test('the total timeout ends a TLS handshake that may take longer', async () => {
    const { wire, url } = await startMute()
    const clock = movableClock()
    const failed = openTransport(clock).failure(url, { timeouts: { connectMs: 60_000, totalMs: 3_000 } })
    await wire.line(0)
    clock.advance(3_001)
    expect(await failed).toBe('upstream-timeout, unsent')
  })

  test('a vendor that replies without TLS fails the call with nothing sent', async () => {
    const wire = await start({ connected: ({ socket }) => void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n') })
    expect(await openTransport().failure(wire.url.replace('http:', 'https:'))).toBe('upstream-failed, unsent')
  })

  test('a vendor that hangs up during the TLS handshake fails the call with nothing sent', async () => {
    const wire = await start({ connected: ({ socket }) => void socket.end() })
    expect(await openTransport().failure(wire.url.replace('http:', 'https:'))).toBe('upstream-failed, unsent')
  })
})

test('a client that left before its call began opens no connection', async () => {
  const wire = await start({})
  expect(await openTransport().failure(wire.url, { signal: AbortSignal.abort() })).toBe('client-gone, unsent')
  expect(wire.lines.length).toBe(0)
})

test('a connection opened for a client that left is used by the next call', async () => {
  const wire = await start({ reply: ({ socket }, _asked, index) => void socket.write(answer(200, `over ${index}`)) })
  const transport = openTransport()
  const client = new AbortController()
  const left = transport.failure(wire.url, { signal: client.signal })
  client.abort()
  expect(await left).toBe('client-gone, unsent')
  await wire.line(0)
  // When another connection is open, this one is open at our end too.
  await openTransport().text(wire.url)
  expect(await transport.text(wire.url)).toBe('over 0')
  expect(wire.lines[0]?.asked.length).toBe(1)
})

describe('over TLS', () => {
  const replies = {
    reply({ socket }: Line, { path, body }: Asked) {
      if (path !== '/echo') return void socket.write(answer(200, 'hello'))
      socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${body.length}\r\n\r\n`)
      socket.write(body)
    },
  }
  const good = { key: localKey, cert: localCertificate }
  const past = { key: localKey, cert: pastCertificate }
  const strange = { key: certificateKey, cert: certificate }

  test.each([
    ['whose certificate is not trusted', good],
    ['whose certificate has expired', past],
    ['whose certificate has another name', strange],
  ])('a vendor %s gets no byte of the request', async (_who, identity) => {
    const wire = await start({ ...replies, identity })
    const sent = await openTransport().send(wire.url, { body: 'secret' })
    expect(sent).toMatchObject({ kind: 'failed', delivery: 'unsent', error: { kind: 'upstream-failed' } })
    await Promise.all(wire.lines.map(({ closed }) => closed))
    expect(wire.lines.reduce((bytes, { received }) => bytes + received(), 0)).toBe(0)
  })

  test('a trusted certificate must also match the host name and not be expired', async () => {
    const folder = temporaryFolder('trust')
    const trusted = join(folder, 'trusted.pem')
    writeFileSync(trusted, localCertificate + pastCertificate + certificate)
    const wires = [
      await start({ ...replies, identity: good }),
      await start({ ...replies, identity: strange }),
      await start({ ...replies, identity: past }),
    ] as const
    const [known, misnamed, expired] = wires
    const byAddress = known.url.replace('localhost', '127.0.0.1')
    const urls = [known.url, `${known.url}/echo`, byAddress, misnamed.url, expired.url]
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [join(import.meta.dir, '../../test/support/call-vendors.ts'), ...urls],
      { env: { ...process.env, NODE_EXTRA_CA_CERTS: trusted } },
    )
    expect(JSON.parse(stdout)).toEqual([
      'hello',
      'the same: true',
      'hello',
      expect.stringContaining("unsent: Hostname/IP does not match certificate's altnames"),
      expect.stringContaining('unsent: certificate has expired'),
    ])
    // Two of the calls had the same host name and shared one connection.
    expect(known.lines.length).toBe(2)
    for (const { lines } of [misnamed, expired]) for (const line of lines) expect(line.received()).toBe(0)
  })
})
