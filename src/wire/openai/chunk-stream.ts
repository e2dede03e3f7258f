import type { Json, JsonObject } from '../../base/json.ts'
import type { ChatAsk, ReplyName } from '../../capabilities/chat.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { silentAfter } from './silent-delta.ts'
import { writeUsage } from './usage.ts'
import { writeHead } from './write-answer.ts'

/** The chunks of a streamed answer. The first chunk of a choice names its role, and the last one its finish. */
export class ChunkStream {
  readonly #head: string
  readonly #tail: string
  readonly #choices: number
  /** By choice, once it has begun: its last delta. */
  readonly #begun = new Map<number, JsonObject>()
  readonly #finished = new Set<number>()
  /** The first choice has begun with a sign of life, and has nothing else yet. */
  #isOnlyAlive = false

  constructor(ask: ChatAsk, name: ReplyName) {
    this.#head = JSON.stringify(writeHead(ask, name, 'chat.completion.chunk')).slice(0, -1)
    // Where usage was asked for, every chunk except the last has a null usage.
    this.#tail = ask.usageShown ? ',"usage":null}\n\n' : '}\n\n'
    this.#choices = ask.choices
  }

  add(choice: number, delta: JsonObject, logprobs: Json = null): string {
    const isFirst = !this.#begun.has(choice)
    this.#begun.set(choice, delta)
    if (choice === 0) this.#isOnlyAlive = false
    return this.#chunk(choice, isFirst ? { role: 'assistant', ...delta } : delta, logprobs, null)
  }

  finish(choice: number, reason: string): string {
    this.#finished.add(choice)
    return this.#beginBefore(choice) + this.#chunk(choice, {}, null, reason)
  }

  /** The choices without a finish. Giving one of them its finish may begin others, which are then visited too. */
  *unfinished(): Iterable<number> {
    for (const choice of this.#begun.keys()) if (!this.#finished.has(choice)) yield choice
  }

  /**
   * A sign of life. Anthropic's streams have one at their beginning, and later ones. None is a comment: go-openai
   * cannot read the error of a stream that had one, and the second version of OpenAI's client for Go, and those before
   * it, take the empty line after a comment for an event without data, and fail.
   */
  beat(): string {
    if (this.#begun.size > 0) {
      const [unfinished] = this.unfinished()
      if (unfinished === undefined) return ''
      return this.#chunk(unfinished, silentAfter(this.#begun.get(unfinished) ?? {}), null, null)
    }
    const text = this.add(0, {})
    this.#isOnlyAlive = true
    return text
  }

  count(usage: Usage): string {
    return `data: ${this.#head},"choices":[],"usage":${JSON.stringify(writeUsage(usage))}}\n\n`
  }

  /**
   * The first chunks of the choices that have none. A choice without output needs one with an empty content, because
   * the chunk with its finish has an empty delta. The others need theirs by then too: OpenAI's client for Java ends an
   * answer as soon as all the choices it has seen are finished, and throws on what comes later.
   */
  #beginBefore(finished: number): string {
    let text = this.#isOnlyAlive ? this.add(0, { content: '' }) : ''
    for (let choice = 0; choice < Math.max(this.#choices, finished + 1); choice++) {
      if (!this.#begun.has(choice)) text += this.add(choice, { content: '' })
    }
    return text
  }

  #chunk(choice: number, delta: JsonObject, logprobs: Json, finish: string | null): string {
    const written = JSON.stringify({ index: choice, delta, logprobs, finish_reason: finish })
    return `data: ${this.#head},"choices":[${written}]${this.#tail}`
  }
}
