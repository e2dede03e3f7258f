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
  ['without trusted proxies the peer is the client', '9.9.9.9', '1.1.1.1', [], '9.9.9.9'],
  ['the header of an untrusted peer is ignored', '9.9.9.9', '1.1.1.1', ['10.0.0.1'], '9.9.9.9'],
  ['the header of a trusted proxy is believed', '10.0.0.1', '1.1.1.1', ['10.0.0.1'], '1.1.1.1'],
  ['entries before the one that the proxy added are ignored', '10.0.0.1', '6.6.6.6, 1.1.1.1', ['10.0.0.1'], '1.1.1.1'],
  ['a trusted proxy without the header is the client', '10.0.0.1', undefined, ['10.0.0.1'], '10.0.0.1'],
  [
    'entries of trusted proxies are skipped',
    '10.0.0.1',
    '6.6.6.6, 1.1.1.1, 198.51.100.7',
    ['10.0.0.0/8', '198.51.100.7'],
    '1.1.1.1',
  ],
  [
    'the first untrusted entry from the right is the client',
    '10.0.0.1',
    '1.1.1.1, 9.9.9.9, 10.0.0.2',
    ['10.0.0.0/8'],
    '9.9.9.9',
  ],
  ['of trusted entries alone the leftmost is the client', '10.0.0.1', '10.0.0.3, 10.0.0.2', ['10.0.0.0/8'], '10.0.0.3'],
  ['an IPv4-mapped peer matches an IPv4 range', '::ffff:10.0.0.1', '1.1.1.1', ['10.0.0.0/8'], '1.1.1.1'],
  ['an IPv6 range is matched', 'fd00::1', '2001:db8::7, fd00::2', ['10.0.0.0/8', 'fd00::/8'], '2001:db8::7'],
  ['the port of an IPv4 entry is removed', '10.0.0.1', '1.1.1.1:4711', ['10.0.0.1'], '1.1.1.1'],
  ['the port of an IPv6 entry is removed', '10.0.0.1', '[2001:db8::7]:4711', ['10.0.0.1'], '2001:db8::7'],
  ['an entry that is not an address is not believed', '10.0.0.1', '1.1.1.1, unknown', ['10.0.0.1'], '10.0.0.1'],
  ['an empty entry is not believed', '10.0.0.1', '1.1.1.1, ', ['10.0.0.1'], '10.0.0.1'],
] as const)('the address of the client is found behind proxies: %s', (_name, peer, forwarded, trusted, address) => {
  expect(from(peer, forwarded, trusted)).toBe(address)
})
