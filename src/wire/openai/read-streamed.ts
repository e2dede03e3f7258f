import { GatewayError } from '../../base/errors.ts'
import { EventSplitter } from '../../base/sse.ts'
import type { AssistantBlock, Choice, Finish, Reply, ReplyEvent } from '../../capabilities/conversation.ts'
import { recounted, type Usage } from '../../capabilities/usage.ts'
import { readAnswer, withArguments } from './read-answer.ts'
import { openReader } from './reply-reader.ts'

const streamStart = /^\s*(?:data|event|id)?:/

/**
 * A whole reply of one choice, from the stream of a model that gives its answers only as streams. An error in its place
 * comes as a whole answer does.
 */
export function readStreamed(body: Uint8Array): Reply {
  if (!streamStart.test(Buffer.from(body.subarray(0, 64)).toString('latin1'))) return readAnswer(body)
  const reader = openReader()
  const draft = new Draft()
  for (const event of new EventSplitter(body.length).push(body)) for (const each of reader.read(event)) draft.add(each)
  return { choices: [draft.choice()], usage: draft.usage }
}

class Draft {
  usage: Usage | undefined
  #finish: Finish | undefined
  readonly #blocks: AssistantBlock[] = []
  readonly #calls: number[] = []

  add(event: ReplyEvent): void {
    switch (event.kind) {
      case 'failure':
        throw event.error
      case 'usage-count':
        this.usage = recounted(this.usage, event.usage)
        return
      case 'choice-finish':
        this.#finish = event.finish
        return
      case 'text-delta':
        return this.#say('text', event.text)
      case 'thinking-delta':
        return this.#say('thinking', event.text)
      case 'refusal-delta':
        return this.#say('refusal', event.text)
      case 'tool-call-start': {
        const { id, name, signature } = event
        this.#calls[event.call] = this.#blocks.length
        this.#blocks.push({
          kind: 'tool-call',
          id,
          name,
          argumentsText: '',
          ...(signature !== undefined && { signature }),
        })
        return
      }
      case 'tool-call-delta': {
        const at = this.#calls[event.call] ?? -1
        const block = this.#blocks[at]
        if (block?.kind !== 'tool-call') return
        this.#blocks[at] = { ...block, argumentsText: block.argumentsText + event.text }
        return
      }
      case 'reply-start':
      case 'reply-end':
      case 'heartbeat':
      case 'hosted-tool-run':
      case 'citation-add':
      case 'image-add':
      case 'thinking-sign':
      case 'thinking-redact':
        return // models that only stream send none of these, or they say nothing of the answer
    }
  }

  /** A stream that ends without a finish was cut off. */
  choice(): Choice {
    if (this.#finish === undefined) {
      throw new GatewayError('upstream-failed', "The model's vendor broke off its answer.")
    }
    return { blocks: withArguments(this.#blocks, this.#finish), finish: this.#finish }
  }

  #say(kind: 'text' | 'thinking' | 'refusal', text: string): void {
    const last = this.#blocks.at(-1)
    if (last?.kind === kind) this.#blocks[this.#blocks.length - 1] = { ...last, text: last.text + text }
    else this.#blocks.push({ kind, text })
  }
}
