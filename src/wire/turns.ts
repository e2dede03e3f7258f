import type {
  AssistantBlock,
  TextBlock,
  ToolCallBlock,
  ToolResultBlock,
  Turn,
  UserBlock,
} from '../capabilities/conversation.ts'

/**
 * Arranges messages into turns. Neighbouring messages of one role become one turn. Results are moved to directly after
 * the turn with their calls, because vendors refuse a conversation in which anything separates the two. Text and
 * instructions between calls, or between calls and their results, are moved behind the results.
 *
 * Each block is visited a constant number of times and earlier turns are never copied, because a conversation may have
 * a hundred thousand short messages.
 */
export function arrangeTurns(said: readonly Turn[]): Turn[] {
  const arrangement = new Arrangement(matchResults(said))
  for (const turn of said) {
    if (turn.role === 'assistant') arrangement.addAssistant(turn.blocks)
    else if (turn.role === 'user') arrangement.addUser(turn.blocks)
    else arrangement.addWords(turn)
  }
  return arrangement.finish()
}

/** Sent as the user before the model's own words, where a vendor takes no conversation that begins with them. */
export const openingWords = '(The conversation begins with your own words.)'

/** Sent as the user to a model that does not continue an assistant message at the end of the conversation. */
export const continuePrompt = 'Go on.'

/** Rewrites instructions in the middle as text of the user, for models that take instructions only at the beginning. */
export function withInstructionsAsText(turns: readonly Turn[]): Turn[] {
  return arrangeTurns(
    turns.map((turn) => (turn.role === 'system' ? { role: 'user', blocks: asUserText(turn.blocks) } : turn)),
  )
}

export function asUserText(instructions: readonly TextBlock[]): TextBlock[] {
  return instructions.map((block) => ({ ...block, text: `<system>\n${block.text}\n</system>` }))
}

type Answers = {
  /** Results keep their order among all results, so that of several with one id the first belongs to the first call. */
  readonly of: ReadonlyMap<ToolCallBlock, readonly Answer[]>
  /** All results that answer a call. A result that answers none is treated as plain content. */
  readonly all: ReadonlySet<UserBlock>
}
type Answer = { readonly result: ToolResultBlock; readonly order: number }

/** Ids may repeat across turns: a result answers the latest unanswered call with its id, or else the latest with it. */
function matchResults(said: readonly Turn[]): Answers {
  const of = new Map<ToolCallBlock, Answer[]>()
  const all = new Set<UserBlock>()
  const unanswered = new Map<string, ToolCallBlock[]>()
  const latest = new Map<string, ToolCallBlock>()
  for (const { blocks } of said) {
    for (const block of blocks) {
      if (block.kind === 'tool-call') {
        append(unanswered, block.id, block)
        latest.set(block.id, block)
      } else if (block.kind === 'tool-result') {
        const call = unanswered.get(block.callId)?.pop() ?? latest.get(block.callId)
        if (call === undefined) continue
        append(of, call, { result: block, order: all.size })
        all.add(block)
      }
    }
  }
  return { of, all }
}

function append<Key, Value>(lists: Map<Key, Value[]>, key: Key, value: Value): void {
  const list = lists.get(key)
  if (list === undefined) lists.set(key, [value])
  else list.push(value)
}

class Arrangement {
  readonly #turns: Turn[] = []
  readonly #answers: Answers
  /** Calls that have results later in the conversation, none of which has been reached yet. */
  #awaiting: ToolCallBlock[] = []
  /** Turns of the user and of the system that came since those calls. */
  #held: Turn[] = []

  constructor(answers: Answers) {
    this.#answers = answers
  }

  /** Calls that come after held turns still belong to the turn of the earlier calls; other content starts a new one. */
  addAssistant(blocks: readonly AssistantBlock[]): void {
    if (blocks.length === 0) return
    if (this.#held.length > 0 && !blocks.every(isCall)) this.#putResults()
    this.#add({ role: 'assistant', blocks })
    for (const block of blocks) if (isCall(block) && this.#answers.of.has(block)) this.#awaiting.push(block)
  }

  addUser(blocks: readonly UserBlock[]): void {
    const words = blocks.filter((block) => !this.#answers.all.has(block))
    if (words.length < blocks.length) this.#putResults()
    this.addWords({ role: 'user', blocks: words })
  }

  addWords(turn: Turn): void {
    if (turn.blocks.length === 0) return
    if (this.#awaiting.length > 0) this.#held.push(turn)
    else this.#add(turn)
  }

  finish(): Turn[] {
    this.#putResults()
    return this.#turns
  }

  #putResults(): void {
    const [awaiting, held] = [this.#awaiting, this.#held]
    this.#awaiting = []
    this.#held = []
    const answers = awaiting.flatMap((call) => this.#answers.of.get(call) ?? [])
    const results = answers.toSorted((a, b) => a.order - b.order).map(({ result }) => result)
    if (results.length > 0) this.#add({ role: 'user', blocks: results })
    for (const turn of held) this.#add(turn)
  }

  #add(turn: Turn): void {
    const last = this.#turns.at(-1)
    if (last?.role !== turn.role) {
      this.#turns.push({ role: turn.role, blocks: [...turn.blocks] } as Turn)
      return
    }
    // Both turns have the same role, which the compiler cannot see; the list was made above and is ours to change.
    const blocks = last.blocks as Turn['blocks'][number][]
    const from = blocks.length
    for (const block of turn.blocks) blocks.push(block)
    const first = blocks[from]
    const isBehindText = turn.role === 'assistant' && blocks[from - 1]?.kind === 'text'
    if (isBehindText && first?.kind === 'text') blocks[from] = { ...first, isApart: true }
  }
}

function isCall(block: AssistantBlock): block is ToolCallBlock {
  return block.kind === 'tool-call'
}
