import { describe, expect, test } from 'bun:test'
import { networkInterfaces } from 'node:os'
import { GatewayError } from '../base/errors.ts'
import { makeOriginCheck, type OriginParts } from './origins.ts'

const plain: OriginParts = { hostname: '127.0.0.1', port: 8080, publicUrl: undefined, hosts: [], origins: [] }

function takes(given: Partial<OriginParts>, host: string, origin?: string): boolean {
  const headers = new Headers({ host, ...(origin !== undefined && { origin }) })
  try {
    // A Request would not keep these headers.
    makeOriginCheck({ ...plain, ...given })({ headers } as Request)
    return true
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    return false
  }
}

describe('the hosts that the tool server answers to', () => {
  test.each([
    ['its own address', {}, '127.0.0.1:8080', true],
    ['localhost', {}, 'localhost:8080', true],
    ['the IPv6 loopback address', {}, '[::1]:8080', true],
    ['another port', {}, '127.0.0.1:8081', false],
    ['no port', {}, '127.0.0.1', false],
    ['an unknown name', {}, 'evil.example:8080', false],
    ['an omitted default port', { port: 80 }, 'localhost', true],
    ['an address that it listens at', { hostname: '10.1.2.3' }, '10.1.2.3:8080', true],
    ['an IPv6 address that it listens at', { hostname: 'fd00::1' }, '[fd00::1]:8080', true],
    ['a name that it listens at, in other case', { hostname: 'Gateway.local' }, 'gateway.LOCAL:8080', true],
    ['the wildcard address', { hostname: '0.0.0.0' }, '0.0.0.0:8080', false],
    ['the public name', { publicUrl: 'https://gw.example.com' }, 'gw.example.com', true],
    ['a public https name with port 443', { publicUrl: 'https://gw.example.com' }, 'gw.example.com:443', true],
    ['a public http name with port 80', { publicUrl: 'http://gw.example.com' }, 'gw.example.com:80', true],
    ['the loopback address of a server that listens elsewhere', { hostname: '10.1.2.3' }, '127.0.0.1:8080', true],
    ['the public name with its port', { publicUrl: 'https://gw.example.com:8443/base' }, 'gw.example.com:8443', true],
    ['the public name at another port', { publicUrl: 'https://gw.example.com' }, 'gw.example.com:8080', false],
    [
      'a public name with a port of its own, at 443',
      { publicUrl: 'https://gw.example.com:8443' },
      'gw.example.com:443',
      false,
    ],
    ['a configured name in other case', { hosts: ['Tools.internal:9000'] }, 'tools.INTERNAL:9000', true],
  ] as const)('the Host header is accepted or refused: %s', (_name, given, host, isTaken) => {
    expect(takes(given, host)).toBe(isTaken)
  })

  test.each(['0.0.0.0', '::', '*'])('a server listening everywhere answers to all its addresses: %j', (hostname) => {
    const found = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? [])
    expect(found.length).toBeGreaterThan(0)
    for (const { address, family } of found) {
      const host = family === 'IPv6' ? `[${address}]:8080` : `${address}:8080`
      expect({ host, isTaken: takes({ hostname }, host) }).toEqual({ host, isTaken: true })
    }
    expect(takes({ hostname }, '203.0.113.9:8080')).toBe(false)
  })
})

describe('the origins that the tool server answers to', () => {
  const host = 'localhost:8080'
  test.each([
    ['no header', undefined, true],
    ['its own origin', 'http://localhost:8080', true],
    ['its own name at another port', 'http://localhost:3000', false],
    ['another site', 'https://evil.example', false],
    ['an opaque origin', 'null', false],
    ['an origin without a scheme', 'localhost:8080', false],
    ['a scheme that ends in http', 'xhttp://localhost:8080', false],
    ['another scheme', 'chrome-extension://localhost:8080', false],
    ['an origin that the operator allowed', 'https://app.example.com', true],
  ] as const)('the Origin header is accepted or refused: %s', (_name, origin, isTaken) => {
    expect(takes({ origins: ['https://app.example.com', '*'] }, host, origin)).toBe(isTaken)
  })

  test('a page of a configured name is accepted, whether the name is written with its port or without', () => {
    for (const name of ['tools.example.com', 'tools.example.com:443']) {
      expect(takes({ hosts: [name] }, name, 'https://tools.example.com')).toBe(true)
    }
  })
})
