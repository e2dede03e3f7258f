import { GatewayError } from '../../src/base/errors.ts'

/** What was thrown. Not `expect().rejects`, because Bun does not serve sockets while it waits for that. */
export function thrownBy(work: Promise<unknown>): Promise<unknown> {
  return work.then(
    () => 'nothing',
    (thrown: unknown) => thrown,
  )
}

/** The error with which something is refused. */
export function errorOf(work: () => unknown): GatewayError {
  try {
    work()
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown
    throw thrown
  }
  throw new Error('it was accepted')
}

/** A call to the system that fails with this code. */
export function failWith(code: string): () => never {
  return () => {
    throw Object.assign(new Error(`it failed with ${code}`), { code })
  }
}
