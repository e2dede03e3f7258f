import { describe, expect, test } from 'bun:test'
import { isAddress, isPublicAddress, isWithinReach } from './public-address.ts'

describe('an address on the open internet', () => {
  test.each(['8.8.8.8', '1.1.1.1', '100.63.255.255', '100.128.0.1', '172.32.0.1', '193.0.0.1', '2606:4700::1111'])(
    '%s is public',
    (address) => {
      expect(isPublicAddress(address)).toBe(true)
    },
  )
})

describe('any other address', () => {
  test.each([
    ['this host', ['0.0.0.0', '0.1.2.3', '::']],
    ['loopback', ['127.0.0.1', '127.255.255.254', '::1']],
    ['private networks', ['10.0.0.1', '172.16.0.1', '172.31.255.255', '192.168.1.1', 'fd00::1', 'fc00::1', 'fec0::1']],
    ['link-local', ['169.254.0.1', 'fe80::1', 'fe80::1%eth0', '2606:4700::1111%eth0']],
    ["carriers' NAT", ['100.64.0.1', '100.127.255.255']],
    [
      'cloud metadata',
      ['169.254.169.254', '169.254.170.2', '100.100.100.200', '192.0.0.192', '168.63.129.16', 'fd00:ec2::254'],
    ],
    ['multicast and broadcast', ['224.0.0.1', '239.255.255.255', '255.255.255.255', 'ff02::1']],
    [
      'reserved and documentation',
      ['240.0.0.1', '192.0.2.1', '198.51.100.1', '203.0.113.1', '198.18.0.1', '2001:db8::1', '3fff::1', '100::1'],
    ],
    ['IPv4 in IPv6, mapped', ['::ffff:127.0.0.1', '::ffff:7f00:1', '::ffff:8.8.8.8', '::ffff:0:7f00:1']],
    ['IPv4 in IPv6, compatible', ['::7f00:1', '::127.0.0.1', '::808:808']],
    ['IPv4 in IPv6, NAT64', ['64:ff9b::7f00:1', '64:ff9b::808:808', '64:ff9b:1::7f00:1']],
    ['IPv4 in IPv6, tunnels', ['2002:7f00:1::', '2002:808:808::', '2001:0:53aa:64c:0:7fff:80ff:fffe']],
    ['unallocated', ['4000::1', '5f00::1', '8000::1']],
    [
      'not a standard address',
      ['', 'localhost', '127.1', '0x7f000001', '2130706433', '0177.0.0.1', '1.2.3', '8.8.8.8 ', '[::1]'],
    ],
  ])('no address of this kind is public: %s', (_name, addresses) => {
    expect(addresses.filter(isPublicAddress)).toEqual([])
  })
})

describe('the addresses within a reach', () => {
  const thisMachine = ['127.0.0.1', '127.255.255.254', '::1']
  const privateNets = ['10.0.0.1', '172.16.0.1', '192.168.1.1', '100.64.0.1', 'fd00::1']
  const clouds = ['169.254.169.254', '169.254.170.2', 'fe80::1', 'fe80::1%eth0', '168.63.129.16', '192.0.0.192']
  const hidden = ['100.100.100.200', 'fd00:ec2::254', 'fd00:0ec2:0::254', 'fd20:ce::254']
  const disguised = ['::ffff:127.0.0.1', '::ffff:10.0.0.1', '::7f00:1', '64:ff9b::a00:1', '2002:7f00:1::', '::1%lo']
  const others = ['0.0.0.0', '::', '224.0.0.1', '255.255.255.255', '8.8.8.8', 'localhost', '127.1', '']
  const all = [...thisMachine, ...privateNets, ...clouds, ...hidden, ...disguised, ...others]

  test.each([
    { reach: 'public', within: [] },
    { reach: 'loopback', within: thisMachine },
    { reach: 'private', within: [...thisMachine, ...privateNets] },
  ] as const)('the reach $reach contains exactly its own addresses', ({ reach, within }) => {
    expect(all.filter((address) => isWithinReach(address, reach))).toEqual([...within])
  })
})

test('only standard spellings of an IP address count as addresses', () => {
  expect(['8.8.8.8', '::1', '2606:4700::1111'].every(isAddress)).toBe(true)
  expect(['8.8.8', '010.0.0.1', '0x8.8.8.8', '134744072', 'a.b', ''].filter(isAddress)).toEqual([])
})
