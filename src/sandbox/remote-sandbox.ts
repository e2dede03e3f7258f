import { baseOf } from './bases.ts'
import { isFields } from './fields.ts'
import type { Sandbox } from './sandbox.ts'

const answerMsMax = 5_000

/**
 * Simulators that run in another process, with the models it was started with. This node neither starts nor stops them.
 */
export function remoteSandbox(url: string, complain: (cause: unknown) => void): Omit<Sandbox, 'port'> {
  return {
    url,
    baseUrl: (vendor) => `${url}/${vendor}${baseOf(vendor)}`,
    warmUp: () => void assertSandboxAnswers(url).catch(complain),
    serve: () => {},
    stop: () => Promise.resolve(),
  }
}

export function noSandboxMessage(url: string): string {
  return `no simulators answer at SANDBOX_URL (${url}): start them with npx turnpike sandbox`
}

/** Rejects if nothing answers at the address, or if what answers is not a simulator (a gateway, for example). */
export async function assertSandboxAnswers(url: string): Promise<void> {
  const response = await fetch(`${url}/__calls?count`, { signal: AbortSignal.timeout(answerMsMax) })
  const answer: unknown = response.ok ? await response.json() : undefined
  if (!isFields(answer) || typeof answer.count !== 'number') throw new Error('something else answers there')
}
