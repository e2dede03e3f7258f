import { gatewayForTests, type TestGateway } from './gateway.ts'

export type ToolOnGateway<Session> = {
  /** The gateway that all tests of the file share. */
  readonly gateway: TestGateway
  /** A new session, which remembers nothing of earlier ones. */
  open(model: string, key?: string): Session
}

/** A vendor's command-line tool for the tests of a file, on a gateway whose books are checked after each test. */
export function toolOnGateway<Session>(
  openSession: (gateway: TestGateway, model: string, key: string) => Session,
): ToolOnGateway<Session> {
  const gateway = gatewayForTests({ mode: 'leased' })
  return { gateway, open: (model, key = gateway.key) => openSession(gateway, model, key) }
}
