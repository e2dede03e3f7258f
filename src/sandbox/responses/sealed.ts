import { createHmac } from 'node:crypto'
import type { SandboxModel } from '../model.ts'

// Known to everybody who reads this, and the same after a restart: an old conversation stays good.
const secret = 'the sandbox seals its thoughts'

/** A thought that only its own vendor can open: a number that tells turns apart, and a MAC over both. */
export function sealThought(model: SandboxModel, seed: number): string {
  const turn = (seed >>> 0).toString(16).padStart(8, '0')
  return start + turn + macOf(model, turn)
}

export function isOurThought(model: SandboxModel, sealed: string): boolean {
  const turn = sealed.slice(start.length, start.length + 8)
  return sealed.startsWith(start) && sealed.slice(start.length + 8) === macOf(model, turn)
}

const start = 'gAAAAA'

function macOf({ vendor }: SandboxModel, turn: string): string {
  return createHmac('sha256', secret).update(`${vendor}:${turn}`).digest('base64url')
}
