import { expect, test } from 'bun:test'
import { makeRanges } from '../base/address-ranges.ts'
import { clientAddress } from './client-address.ts'

const from = (peer: string, forwarded: string | undefined, trusted: readonly string[]) =>
  clientAddress(
    new Request('http://x', forwarded === undefined ? {} : { headers: { 'x-forwarded-for': forwarded } }),
    { address: () => peer },
    makeRanges(trusted),
  )

test.each([
  ['nobody is trusted', '9.9.9.9', '1.1.1.1', [], '9.9.9.9'],
  ['a stranger is not trusted', '9.9.9.9', '1.1.1.1', ['10.0.0.1'], '9.9.9.9'],
  ['a trusted proxy is believed', '10.0.0.1', '1.1.1.1', ['10.0.0.1'], '1.1.1.1'],
  ['what came before the proxy’s own entry is not', '10.0.0.1', '6.6.6.6, 1.1.1.1', ['10.0.0.1'], '1.1.1.1'],
  ['a proxy that says nothing is the client', '10.0.0.1', undefined, ['10.0.0.1'], '10.0.0.1'],
  ['a proxy is read past', '10.0.0.1', '6.6.6.6, 1.1.1.1, 198.51.100.7', ['10.0.0.0/8', '198.51.100.7'], '1.1.1.1'],
  ['and no further than the first stranger', '10.0.0.1', '1.1.1.1, 9.9.9.9, 10.0.0.2', ['10.0.0.0/8'], '9.9.9.9'],
  ['proxies alone are the first of them', '10.0.0.1', '10.0.0.3, 10.0.0.2', ['10.0.0.0/8'], '10.0.0.3'],
  ['a peer as sockets of both kinds show it', '::ffff:10.0.0.1', '1.1.1.1', ['10.0.0.0/8'], '1.1.1.1'],
  ['a range of the other kind', 'fd00::1', '2001:db8::7, fd00::2', ['10.0.0.0/8', 'fd00::/8'], '2001:db8::7'],
  ['a port is not part of an address', '10.0.0.1', '1.1.1.1:4711', ['10.0.0.1'], '1.1.1.1'],
  ['nor is it of this one', '10.0.0.1', '[2001:db8::7]:4711', ['10.0.0.1'], '2001:db8::7'],
  ['what is no address counts as nothing', '10.0.0.1', '1.1.1.1, unknown', ['10.0.0.1'], '10.0.0.1'],
  ['nor does an empty entry count', '10.0.0.1', '1.1.1.1, ', ['10.0.0.1'], '10.0.0.1'],
] as const)('the address of the client is found behind proxies: %s', (_name, peer, forwarded, trusted, address) => {
  expect(from(peer, forwarded, trusted)).toBe(address)
})
