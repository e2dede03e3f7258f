import type { Turn, UserBlock } from '../capabilities/conversation.ts'

/**
 * Puts a turn behind the others. Neighbours of one role are one turn. Instructions never part a call from its results:
 * they follow them. The blocks of a turn must be its own: those of its neighbours are put behind them, since a copy for each
 * of ten thousand short messages would take seconds.
 */
export function joinTurn(turns: Turn[], turn: Turn): void {
  const last = turns.at(-1)
  if (last?.role === 'system' && hasResults(turn) && turns.at(-2)?.role === 'assistant') {
    turns.splice(-1, 0, turn)
    return
  }
  if (last?.role !== turn.role) {
    turns.push(turn)
    return
  }
  // Both have the role of `turn`, which the compiler cannot see.
  const blocks = last.blocks as Turn['blocks'][number][]
  for (const block of turn.blocks) blocks.push(block)
}

function hasResults({ role, blocks }: Turn): boolean {
  return role === 'user' && blocks.some(isResult)
}

function isResult({ kind }: UserBlock): boolean {
  return kind === 'tool-result'
}

export function resultsFirst(turn: Turn): Turn {
  if (turn.role !== 'user') return turn
  return { role: 'user', blocks: [...turn.blocks.filter(isResult), ...turn.blocks.filter((block) => !isResult(block))] }
}
