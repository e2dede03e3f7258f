import { readFile } from 'node:fs/promises'
import ipaddr from 'ipaddr.js'
import type { Clock } from './clock.ts'

/** A connection to this machine: our port, and the address and port of the peer. */
export type Line = { readonly localPort: number; readonly address: string; readonly port: number }

/**
 * The system's table of connections. The runtime tells when its own buffer has room again, but megabytes may still lie
 * in the system's buffer behind it, and only this table shows whether the client reads any of them.
 */
export type SocketTable = {
  /**
   * How many written bytes the peer has not acknowledged; undefined if the system does not tell or the connection is
   * gone. A table read up to `ageMsMax` ago is good enough, so that many calls at the same time share one reading.
   */
  unreadBytes(line: Line, ageMsMax: number): Promise<number | undefined>
}

// Only Linux has these files; elsewhere nothing is known about any connection.
const files = ['/proc/net/tcp', '/proc/net/tcp6']

export function makeSocketTable(clock: Pick<Clock, 'monotonic'>): SocketTable {
  let latest: { readonly readAt: number; readonly rows: Promise<Buffer> } | undefined

  return {
    async unreadBytes(line, ageMsMax) {
      const now = clock.monotonic()
      if (latest === undefined || now - latest.readAt > ageMsMax) latest = { readAt: now, rows: readRows() }
      return findQueued(await latest.rows, line)
    },
  }
}

async function readRows(): Promise<Buffer> {
  return Buffer.concat(await Promise.all(files.map((path) => readFile(path).catch(() => Buffer.alloc(0)))))
}

// After the addresses come the state (two hex digits), a space, and the bytes queued to be sent (eight hex digits).
const stateLength = 3
const queuedLength = 8

/** Searches the raw text for the addresses and parses no rows, because there are thousands and one is wanted. */
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

/** An address as the tables write it. A dual-stack port's IPv4 clients are in the IPv6 table, as mapped addresses. */
function writtenAs(address: string): string[] {
  if (!ipaddr.isValid(address)) return []
  const { IPv4 } = ipaddr
  const parsed = ipaddr.process(address)
  if (!(parsed instanceof IPv4)) return [inWords(parsed.toByteArray())]
  return [inWords(parsed.toByteArray()), inWords(parsed.toIPv4MappedAddress().toByteArray())]
}

/** The table writes an address in words of four bytes, each with its bytes reversed. */
function inWords(bytes: readonly number[]): string {
  return Buffer.from(bytes).swap32().toString('hex').toUpperCase()
}

function hex(port: number): string {
  return port.toString(16).toUpperCase().padStart(4, '0')
}
