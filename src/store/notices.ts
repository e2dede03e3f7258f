import { Client } from 'pg'

/**
 * Messages between nodes over PostgreSQL's LISTEN and NOTIFY. Nothing may depend on one arriving: a node that is not
 * connected misses it.
 */
export type Notices = {
  send(text: string): Promise<void>
  close(): Promise<void>
}

export type Waits = {
  /** A connection whose other side vanished silently is detected by the first notice without an answer for so long. */
  readonly patienceMs: number
  readonly reconnectMs: number
}

const usualWaits: Waits = { patienceMs: 2_000, reconnectMs: 1_000 }

/** `waits`: tests have no time for the usual ones. */
export function openNotices(
  url: string,
  channel: string,
  heard: (text: string) => void,
  { patienceMs, reconnectMs } = usualWaits,
): Notices {
  /** The newest connection, from the moment it is tried until it is lost. */
  let client: Client | undefined
  let isListening = false
  let timer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false

  async function connect(): Promise<void> {
    const next = new Client({
      connectionString: url,
      application_name: 'turnpike-notices',
      connectionTimeoutMillis: patienceMs,
      query_timeout: patienceMs,
      keepAlive: true,
    })
    client = next
    next.on('notification', ({ payload }) => heard(payload ?? ''))
    next.on('error', () => lost(next))
    next.on('end', () => lost(next))
    try {
      await next.connect()
      await next.query(`listen ${channel}`)
      isListening = client === next
      if (isClosed) await next.end()
    } catch {
      lost(next)
    }
  }

  function lost(which: Client): void {
    if (client !== which) return
    client = undefined
    isListening = false
    which.end().catch(() => {})
    if (isClosed) return
    timer = setTimeout(() => void connect(), reconnectMs)
    timer.unref()
  }

  void connect()
  return {
    async send(text) {
      const sender = client
      if (sender === undefined || !isListening) return
      try {
        await sender.query('select pg_notify($1, $2)', [channel, text])
      } catch (error) {
        lost(sender)
        throw error
      }
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      if (isListening) await client?.end().catch(() => {})
    },
  }
}
