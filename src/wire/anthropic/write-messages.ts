import type { JsonObject } from '../../base/json.ts'
import type { AssistantBlock, TextBlock, ToolResultBlock, Turn } from '../../capabilities/conversation.ts'
import { textIn } from '../loose.ts'
import { asUserText, continuePrompt, openingWords } from '../turns.ts'
import { writeCallId } from './tool-ids.ts'
import { writeAssistantBlock, writeResult, writeResultContent, writeText, writeUserBlock } from './write-blocks.ts'
import type { WriteCache } from './write-cache.ts'

export type Message = { readonly role: 'user' | 'assistant' | 'system'; readonly content: JsonObject[] }

export type MessageStyle = {
  /** Newer models refuse to continue an assistant message at the end. */
  readonly isNew: boolean
  /** Whether the model takes instructions in the middle; others get them as text of the user. */
  readonly takesInstructions: boolean
  readonly cache: WriteCache
}

// Written in place of a result that the vendor requires and a conversation lacks.
const lostResult = 'There is no result of this call.'

/**
 * Writes a conversation in the order that the vendor enforces: the user comes first; every call is answered in the very
 * next message, with all results of a turn in one message and before any text; neighbours of one role are one message.
 */
export function writeMessages(turns: readonly Turn[], style: MessageStyle): Message[] {
  const draft = new Draft(style)
  for (const [index, turn] of turns.entries()) {
    if (turn.role === 'assistant') draft.addAssistant(turn.blocks, resultsAfter(turns, index))
    else if (turn.role === 'user') draft.addUser(turn)
    else draft.addSystem(turn)
  }
  return draft.finish()
}

/** The results that come before the next assistant turn, wherever they stand. */
function resultsAfter(turns: readonly Turn[], index: number): ToolResultBlock[] {
  const found: ToolResultBlock[] = []
  // By index: copying the remaining turns for each of ten thousand turns would take seconds.
  for (let next = index + 1; next < turns.length; next++) {
    const turn = turns[next]
    if (turn?.role === 'assistant') break
    if (turn?.role === 'user') for (const block of turn.blocks) if (block.kind === 'tool-result') found.push(block)
  }
  return found
}

type Of<Role extends Turn['role']> = Extract<Turn, { role: Role }>

class Draft {
  readonly #style: MessageStyle
  readonly #messages: Message[] = []
  readonly #ids = new Set<string>()
  /** The last suffix of each id. Counting from 1 every time would take minutes for ten thousand calls with one id. */
  readonly #timesOf = new Map<string, number>()
  /** Results written with their calls already; a result that answers no call is written as plain content. */
  readonly #placed = new Set<ToolResultBlock>()
  /** The instructions since the last message of the model. They are written behind all that the user said since. */
  #instructions: TextBlock[] = []

  constructor(style: MessageStyle) {
    this.#style = style
  }

  addAssistant(blocks: readonly AssistantBlock[], results: readonly ToolResultBlock[]): void {
    const { cache } = this.#style
    // First, because cache hints are written in order. A turn of which nothing is left separates nothing.
    if (this.#instructions.length > 0 && blocks.some(isWritten)) this.#instruct()
    const answers: JsonObject[] = []
    const content: JsonObject[] = []
    // Reversed, so that `pop` takes the results of one id in their order.
    const pending = Map.groupBy(results.toReversed(), ({ callId }) => callId)
    for (const block of blocks) {
      let written = ''
      content.push(...writeAssistantBlock(block, (id) => (written = this.#newId(id)), cache))
      if (block.kind !== 'tool-call') continue
      const result = pending.get(block.id)?.pop()
      if (result !== undefined) this.#placed.add(result)
      answers.push(
        result === undefined
          ? { type: 'tool_result', tool_use_id: written, content: lostResult, is_error: true }
          : writeResult(result, written, cache),
      )
    }
    this.#push('assistant', content)
    this.#push('user', answers)
  }

  addUser({ blocks }: Of<'user'>): void {
    const { cache } = this.#style
    const content = blocks.flatMap((block) => {
      if (block.kind !== 'tool-result') return writeUserBlock(block, cache)
      return this.#placed.has(block) ? [] : writeResultContent(block.blocks, cache)
    })
    this.#push('user', content)
  }

  addSystem({ blocks }: Of<'system'>): void {
    if (this.#style.takesInstructions) this.#instructions.push(...blocks)
    else this.#pushText('user', asUserText(blocks))
  }

  /**
   * The vendor takes instructions in the middle only between a message of the user and one of the model, or at the end
   * after one of the user. Where the user said nothing, they are written as text of the user.
   */
  #instruct(): void {
    const blocks = this.#instructions
    this.#instructions = []
    if (this.#messages.at(-1)?.role === 'user') this.#pushText('system', blocks)
    else this.#pushText('user', asUserText(blocks))
  }

  #pushText(role: Message['role'], blocks: readonly TextBlock[]): void {
    const { cache } = this.#style
    this.#push(
      role,
      blocks.flatMap((block) => writeText(block, cache)),
    )
  }

  finish(): Message[] {
    this.#instruct()
    const messages = this.#messages
    if (messages[0]?.role !== 'user') messages.unshift({ role: 'user', content: [said(openingWords)] })
    const last = messages.at(-1)
    if (last?.role !== 'assistant') return messages
    if (this.#style.isNew) return [...messages, { role: 'user', content: [said(continuePrompt)] }]
    // An assistant message to continue must not end with whitespace.
    const ending = last.content.at(-1)
    if (ending?.['type'] === 'text') last.content.splice(-1, 1, { ...ending, text: textIn(ending['text']).trimEnd() })
    return messages
  }

  #push(role: Message['role'], content: JsonObject[]): void {
    if (content.length === 0) return
    const last = this.#messages.at(-1)
    if (last?.role === role) last.content.push(...content)
    else this.#messages.push({ role, content })
  }

  /** Some vendors number their calls from the start in every turn; here every id must be unique. */
  #newId(id: string): string {
    const written = writeCallId(id)
    let times = (this.#timesOf.get(written) ?? 0) + 1
    while (this.#ids.has(numbered(written, times))) times++
    this.#timesOf.set(written, times)
    const unique = numbered(written, times)
    this.#ids.add(unique)
    return unique
  }
}

function isWritten(block: AssistantBlock): boolean {
  const [written] = writeAssistantBlock(
    block,
    (id) => id,
    () => ({}),
  )
  return written !== undefined
}

function numbered(id: string, times: number): string {
  return times === 1 ? id : `${id}_${times}`
}

function said(text: string): JsonObject {
  return { type: 'text', text }
}
