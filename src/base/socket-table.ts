import { readFile } from 'node:fs/promises'
import ipaddr from 'ipaddr.js'
import type { Clock } from './clock.ts'

/** A connection to this machine: the port here, and the address and port over there. */
export type Line = { readonly localPort: number; readonly address: string; readonly port: number }

/**
 * What the system knows of its connections. A runtime says when its own buffer has room again; behind that lie megabytes
 * in the system's, and whether a reader takes anything of those is written here alone.
 */
export type SocketTable = {
  /**
   * How many bytes of what was written the other side has not acknowledged. Undefined where the system does not say, or
   * the connection is gone. What was read up to `ageMsMax` ago will do: all that ask at the same time cost one reading.
   */
  untaken(line: Line, ageMsMax: number): Promise<number | undefined>
}

// Of Linux. Where there are none, nothing is known.
const files = ['/proc/net/tcp', '/proc/net/tcp6']

export function makeSocketTable(clock: Pick<Clock, 'monotonic'>): SocketTable {
  let latest: { readonly readAt: number; readonly rows: Promise<Buffer> } | undefined

  return {
    async untaken(line, ageMsMax) {
      const now = clock.monotonic()
      if (latest === undefined || now - latest.readAt > ageMsMax) latest = { readAt: now, rows: readRows() }
      return findQueued(await latest.rows, line)
    },
  }
}

async function readRows(): Promise<Buffer> {
  return Buffer.concat(await Promise.all(files.map((path) => readFile(path).catch(() => Buffer.alloc(0)))))
}

// Behind the addresses stands the state in two digits, a space, and what is queued to be sent in eight.
const stateLength = 3
const queuedLength = 8

/** By looking for its addresses: there are rows by the thousand, and one is wanted. */
function findQueued(rows: Buffer, { localPort, address, port }: Line): number | undefined {
  for (const written of writtenAs(address)) {
    const addresses = `:${hex(localPort)} ${written}:${hex(port)} `
    const at = rows.indexOf(addresses, 0, 'latin1')
    if (at === -1) continue
    const from = at + addresses.length + stateLength
    const queued = Number.parseInt(rows.toString('latin1', from, from + queuedLength), 16)
    return Number.isNaN(queued) ? undefined : queued
  }
  return undefined
}

/** As the table writes it. A client of IPv4 is in the other one too, where the port takes both. */
function writtenAs(address: string): string[] {
  if (!ipaddr.isValid(address)) return []
  const { IPv4 } = ipaddr
  const parsed = ipaddr.process(address)
  if (!(parsed instanceof IPv4)) return [inWords(parsed.toByteArray())]
  return [inWords(parsed.toByteArray()), inWords(parsed.toIPv4MappedAddress().toByteArray())]
}

/** In words of four bytes, each from its last to its first. */
function inWords(bytes: readonly number[]): string {
  return Buffer.from(bytes).swap32().toString('hex').toUpperCase()
}

function hex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0')
}
