import type { Turn, UserBlock } from '../capabilities/conversation.ts'

/**
 * Turns of a conversation as they are read, each put behind the others. Neighbours of one role are one turn. What is said
 * between a call and its results follows them: no instructions and no words part the two, of several results neither.
 *
 * The blocks of a turn must be its own: those of its neighbours are put behind them, since a copy for each of ten thousand
 * short messages would take seconds.
 */
export function joinedTurns(): { readonly turns: Turn[]; readonly join: (turn: Turn) => void } {
  const turns: Turn[] = []
  // Kept and not looked for, since any number of turns may stand behind it.
  let lastOfAssistant = -1

  function add(turn: Turn): void {
    const last = turns.at(-1)
    if (last?.role === turn.role) putBehind(last, turn)
    else turns.push(turn)
    if (turn.role === 'assistant') lastOfAssistant = turns.length - 1
  }

  function addResults(results: Turn): void {
    const behindCalls = turns[lastOfAssistant + 1]
    if (lastOfAssistant === -1 || behindCalls === undefined) add(results)
    else if (behindCalls.role === 'user') putBehind(behindCalls, results)
    else turns.splice(lastOfAssistant + 1, 0, results)
  }

  return { turns, join: (turn) => (hasResults(turn) ? addResults(turn) : add(turn)) }
}

function putBehind(turn: Turn, next: Turn): void {
  // Both have the same role, which the compiler cannot see.
  const blocks = turn.blocks as Turn['blocks'][number][]
  for (const block of next.blocks) blocks.push(block)
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
