import type { JsonObject } from '../../base/json.ts'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import { CitedText } from '../cited-text.ts'
import { writeCitation, writeThinkingBlock } from './write-answer.ts'

/**
 * Thinking blocks and citations of streamed choices, held until a choice ends. OpenAI's clients join the parts of a
 * list only if its items have an `index`, as calls have. Of any other list, their client for Python refuses a second
 * part and the one for Node keeps only the last, so that each list must be in one delta.
 */
export class HeldLists {
  readonly #choices = new Map<number, Held>()

  take(event: ReplyEvent): void {
    if (event.kind === 'text-delta') {
      this.#of(event.choice).cited.grow(event.text)
    } else if (event.kind === 'thinking-sign') {
      // With all of the thinking that it signs, because clients send both back together.
      this.#of(event.choice).blocks.push(writeThinkingBlock(event.text, event.signature))
    } else if (event.kind === 'thinking-redact') {
      this.#of(event.choice).blocks.push({ type: 'redacted_thinking', data: event.data })
    } else if (event.kind === 'citation-add') {
      const { annotations, cited } = this.#of(event.choice)
      annotations.push(...writeCitation(event.citation, cited))
    }
  }

  /** The lists of a choice, if it has any. */
  deltaOf(choice: number): JsonObject | undefined {
    const { blocks, annotations } = this.#of(choice)
    if (blocks.length === 0 && annotations.length === 0) return undefined
    return {
      // LiteLLM skips a delta that has neither text, calls nor `reasoning_content`, and would lose the thinking blocks.
      ...(blocks.length > 0 && { reasoning_content: '', thinking_blocks: blocks }),
      ...(annotations.length > 0 && { annotations }),
    }
  }

  #of(choice: number): Held {
    let held = this.#choices.get(choice)
    if (held === undefined) {
      held = { cited: new CitedText(), blocks: [], annotations: [] }
      this.#choices.set(choice, held)
    }
    return held
  }
}

type Held = { readonly cited: CitedText; readonly blocks: JsonObject[]; readonly annotations: JsonObject[] }
