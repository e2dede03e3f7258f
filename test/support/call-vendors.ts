import { systemClock } from '../../src/base/clock.ts'
import { makeTransport } from '../../src/upstream/transport.ts'

/**
 * A separate process that calls the given URLs one after another and prints the outcome of each, because a process
 * reads its trusted certificates when it starts. To a path `/echo` it sends a large body, and reports whether the same
 * came back.
 */
const transport = makeTransport(systemClock)
const timeouts = { connectMs: 5_000, firstByteMs: 5_000, idleMs: 5_000, totalMs: 5_000 }
const large = Buffer.alloc(8 * 1024 * 1024)
for (let i = 0; i < large.length; i += 4) large.writeUInt32LE(i, i)

async function cameOf(url: string): Promise<string> {
  const isEcho = url.endsWith('/echo')
  const call = { url, headers: {}, body: isEcho ? large : '{"secret":true}' }
  const sent = await transport.send(call, timeouts, new AbortController().signal, 'kept')
  if (sent.kind === 'failed') {
    const { cause } = sent.error.details
    return `${sent.delivery}: ${cause instanceof Error ? cause.message : sent.error.message}`
  }
  const bytes = Buffer.from(await sent.exchange.readAll(large.length))
  return isEcho ? `the same: ${bytes.equals(large)}` : bytes.toString()
}

const came: string[] = []
for (const url of process.argv.slice(2)) came.push(await cameOf(url))
process.stdout.write(JSON.stringify(came))
