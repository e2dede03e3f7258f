import { connect, createServer, type AddressInfo, type Socket } from 'node:net'

/** A proxy to a database that records everything sent to it: every statement, and every bound value. */
export type TappedPostgres = {
  /** The address of the database through the proxy. */
  readonly url: string
  /** Every byte that was sent to the database. */
  said(): Buffer
  /** The texts of all statements so far. */
  statements(): Set<string>
  /** The connections that are open now carry nothing more, and nobody is told: as when a cable is pulled. */
  fallSilent(): void
  close(): Promise<void>
}

export async function tapPostgres(databaseUrl: string): Promise<TappedPostgres> {
  const target = new URL(databaseUrl)
  const sessions: Buffer[][] = []
  const sockets = new Set<Socket>()
  const silenced: (() => void)[] = []
  const server = createServer((near) => {
    const heard: Buffer[] = []
    sessions.push(heard)
    const far = connect(Number(target.port), target.hostname)
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from)
      from.on('error', () => to.destroy()).on('close', () => to.destroy())
    }
    near.on('data', (bytes: Buffer) => heard.push(bytes))
    near.pipe(far)
    far.pipe(near)
    silenced.push(() => {
      far.unpipe(near)
      near.unpipe(far).resume() // it is still read, so that its end is seen
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = new URL(databaseUrl)
  url.port = String((server.address() as AddressInfo).port)
  return {
    url: url.href,
    said: () => Buffer.concat(sessions.flat()),
    statements: () => new Set(sessions.flatMap((heard) => statementsIn(Buffer.concat(heard)))),
    fallSilent() {
      for (const silence of silenced.splice(0)) silence()
    },
    async close() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

/** A session begins with a message without a type; every other message is a type, its own length and its content. */
function statementsIn(session: Buffer): string[] {
  const found: string[] = []
  let at = session.length < 4 ? session.length : session.readUInt32BE(0)
  while (at + 5 <= session.length) {
    const type = session.toString('latin1', at, at + 1)
    const end = at + 1 + session.readUInt32BE(at + 1)
    const words = session.toString('utf8', at + 5, end).split('\0')
    // `Q` is a text alone; `P` is a name, then the text.
    if (type === 'Q') found.push(words[0] ?? '')
    if (type === 'P') found.push(words[1] ?? '')
    at = end
  }
  return found
}
