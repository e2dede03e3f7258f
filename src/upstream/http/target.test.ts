import { expect, test } from 'bun:test'
import { targetOf } from './target.ts'

test.each([
  ['https://vendor.example/v1/x?a=b', 'vendor.example', 443, 'vendor.example'],
  ['http://vendor.example/v1/x?a=b', 'vendor.example', 80, 'vendor.example'],
  ['https://vendor.example:8443/v1/x?a=b', 'vendor.example', 8443, 'vendor.example:8443'],
  ['http://[::1]:11434/v1/x?a=b', '::1', 11_434, '[::1]:11434'],
])('the target of %s has its host name, port and host header', (url, hostname, port, host) => {
  const { origin, protocol } = new URL(url)
  expect(targetOf(url)).toMatchObject({ origin, isSecure: protocol === 'https:', hostname, port })
  expect(targetOf(url).headStart).toStartWith(` /v1/x?a=b HTTP/1.1\r\nhost: ${host}\r\n`)
})

test('an address that is not http is refused', () => {
  expect(() => targetOf('ftp://vendor.example/v1')).toThrow('not http')
})
