import { createHmac } from 'node:crypto'
import type { SandboxModel } from '../model.ts'

// Known to everybody who reads this, and the same after a restart: an old conversation stays good.
const secret = 'the sandbox seals its thoughts'

/** A thought that only its own family of models can open: a number that tells turns apart, and a MAC over both. */
export function sealThought(model: SandboxModel, seed: number): string {
  const turn = (seed >>> 0).toString(16).padStart(8, '0')
  return start + turn + macOf(model, turn)
}

export function isOurThought(model: SandboxModel, sealed: string): boolean {
  const turn = sealed.slice(start.length, start.length + 8)
  return sealed.startsWith(start) && sealed.slice(start.length + 8) === macOf(model, turn)
}

const start = 'gAAAAA'

function macOf(model: SandboxModel, turn: string): string {
  return createHmac('sha256', secret)
    .update(`${model.vendor}:${familyOf(model)}:${turn}`)
    .digest('base64url')
}

/** A model without its date, its size and its nickname: gpt-5.1-2025-11-13 reads what gpt-5.1 thought, and mini too. */
function familyOf({ model }: SandboxModel): string {
  return /^(?:gpt-\d+(?:\.\d+)?|o\d+)/.exec(model)?.[0] ?? model.replace(/-\d{4}-\d{2}-\d{2}$/, '')
}
