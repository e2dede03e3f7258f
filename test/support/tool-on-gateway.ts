import { afterAll, afterEach, beforeAll } from 'bun:test'
import { startTestGateway, type TestGateway } from './gateway.ts'

export type ToolOnGateway<Session> = {
  /** The gateway that all tests of the file share. */
  readonly gateway: TestGateway
  /** A session that ends with its test. */
  open(model: string, key?: string): Session
}

/** A vendor's command-line tool for the tests of a file, on a gateway whose books are checked after each test. */
export function toolOnGateway<Session extends { close(): void }>(
  openSession: (gateway: TestGateway, model: string, key: string) => Session,
): ToolOnGateway<Session> {
  let gateway: TestGateway
  const sessions: Session[] = []

  beforeAll(async () => {
    gateway = await startTestGateway({ mode: 'leased' })
  })
  afterEach(async () => {
    for (const session of sessions.splice(0)) session.close()
    await gateway.assertBooks()
  })
  afterAll(() => gateway.close())

  return {
    get gateway() {
      return gateway
    },
    open(model, key = gateway.key) {
      const session = openSession(gateway, model, key)
      sessions.push(session)
      return session
    },
  }
}
