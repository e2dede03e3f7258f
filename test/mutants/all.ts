import { moneyMutants } from './money.ts'
import type { Mutant } from './mutant.ts'
import { serverMutants } from './server.ts'
import { taskMutants } from './tasks.ts'

export const mutants: readonly Mutant[] = [...moneyMutants, ...taskMutants, ...serverMutants]

/**
 * How often the text that a mutant changes occurs in its file. Unless it occurs exactly once, the mutant is outdated.
 */
export function placesOf({ from }: Mutant, text: string): number {
  return text.split(from).length - 1
}
