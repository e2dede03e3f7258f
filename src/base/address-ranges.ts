import ipaddr from 'ipaddr.js'
import { isAddress } from './public-address.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6

/** Whether a text is an address or a CIDR range. A /0 is refused, because it would match every address. */
export function isAddressRange(text: string): boolean {
  return rangeOf(text) !== undefined
}

/** Makes a test of whether an address lies in one of these ranges. Ranges that cannot be parsed match no address. */
export function makeRanges(texts: readonly string[]): (address: string) => boolean {
  const ranges = texts.flatMap((text) => rangeOf(text) ?? [])
  return (text) => {
    if (ranges.length === 0 || !isAddress(text)) return false
    const address = read(text)
    return ranges.some((range) => range.first.kind() === address.kind() && address.match(range.first, range.bits))
  }
}

function rangeOf(text: string): { readonly first: Address; readonly bits: number } | undefined {
  const [address = '', length, ...rest] = text.split('/')
  if (rest.length > 0 || address.includes('%') || !isAddress(address)) return undefined
  const first = read(address)
  const bitsMax = first.kind() === 'ipv4' ? 32 : 128
  if (length === undefined) return { first, bits: bitsMax }
  const bits = /^\d{1,3}$/.test(length) ? Number(length) : 0
  return bits < 1 || bits > bitsMax ? undefined : { first, bits }
}

/** Unwraps IPv4-mapped addresses, because dual-stack sockets report an IPv4 peer as an IPv6 address. */
function read(text: string): Address {
  return ipaddr.process(text)
}
