import { Client } from 'pg'

/** Words from node to node over PostgreSQL. Nothing may depend on one arriving: a node that is away hears nothing. */
export type Notices = {
  send(text: string): Promise<void>
  close(): Promise<void>
}

const reconnectMs = 1_000

export function openNotices(url: string, channel: string, heard: (text: string) => void): Notices {
  let client: Client | undefined
  let timer: ReturnType<typeof setTimeout> | undefined
  let isClosed = false

  async function connect(): Promise<void> {
    const next = new Client({ connectionString: url, application_name: 'turnpike-notices', keepAlive: true })
    next.on('notification', ({ payload }) => heard(payload ?? ''))
    next.on('error', () => lost(next))
    next.on('end', () => lost(next))
    try {
      await next.connect()
      await next.query(`listen ${channel}`)
      if (isClosed) await next.end()
      else client = next
    } catch {
      lost(next)
    }
  }

  function lost(which: Client): void {
    if (client !== undefined && client !== which) return
    client = undefined
    if (isClosed) return
    clearTimeout(timer)
    timer = setTimeout(() => void connect(), reconnectMs)
    timer.unref()
  }

  void connect()
  return {
    async send(text) {
      await client?.query('select pg_notify($1, $2)', [channel, text])
    },
    async close() {
      isClosed = true
      clearTimeout(timer)
      await client?.end().catch(() => {})
    },
  }
}
