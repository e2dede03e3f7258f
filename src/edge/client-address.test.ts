import { expect, test } from 'bun:test'
import { clientAddress } from './client-address.ts'

const from = (peer: string, forwarded: string | undefined, trusted: readonly string[]) =>
  clientAddress(
    new Request('http://x', forwarded === undefined ? {} : { headers: { 'x-forwarded-for': forwarded } }),
    () => peer,
    new Set(trusted),
  )

test.each([
  ['nobody is trusted', '9.9.9.9', '1.1.1.1', [], '9.9.9.9'],
  ['a stranger is not trusted', '9.9.9.9', '1.1.1.1', ['10.0.0.1'], '9.9.9.9'],
  ['a trusted proxy is believed', '10.0.0.1', '1.1.1.1', ['10.0.0.1'], '1.1.1.1'],
  ['what came before the proxy’s own entry is not', '10.0.0.1', '6.6.6.6, 1.1.1.1', ['10.0.0.1'], '1.1.1.1'],
  ['a proxy that says nothing is the client', '10.0.0.1', undefined, ['10.0.0.1'], '10.0.0.1'],
  ['nor does an empty entry count', '10.0.0.1', '1.1.1.1, ', ['10.0.0.1'], '10.0.0.1'],
] as const)('%s', (_name, peer, forwarded, trusted, address) => {
  expect(from(peer, forwarded, trusted)).toBe(address)
})
