import { createHmac } from 'node:crypto'
import type { SandboxModel } from '../model.ts'

// Not really secret, and the same after a restart, so that an old conversation stays valid.
const secret = 'the sandbox seals its thoughts'

/**
 * Encrypted reasoning that only its own vendor accepts: a number that tells turns apart, and a MAC over number and
 * vendor.
 */
export function sealReasoning(model: SandboxModel, seed: number): string {
  const turn = (seed >>> 0).toString(16).padStart(8, '0')
  return start + turn + macOf(model, turn)
}

export function isOurReasoning(model: SandboxModel, sealed: string): boolean {
  const turn = sealed.slice(start.length, start.length + 8)
  return sealed.startsWith(start) && sealed.slice(start.length + 8) === macOf(model, turn)
}

const start = 'gAAAAA'

function macOf({ vendor }: SandboxModel, turn: string): string {
  return createHmac('sha256', secret).update(`${vendor}:${turn}`).digest('base64url')
}
