import type { GatewayError } from '../../base/errors.ts'
import type { ChatStream, HostedWork, ReplyReader, ReplyWriter, StreamFacts } from '../../capabilities/chat.ts'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import { OutputCounter } from '../../capabilities/output-counter.ts'
import { isWhole, recounted, type Usage } from '../../capabilities/usage.ts'

/** Sums up the events of one vendor stream as they come. */
export class ReplyFacts implements StreamFacts {
  usage: Usage | undefined
  finished = false
  ended = false
  failure: GatewayError | undefined
  hosted: HostedWork = { searches: 0, foundBytes: 0 }
  images = 0
  isOwed = false
  readonly #said = new OutputCounter()
  readonly #hides: ReplyWriter['hides']

  constructor({ hides }: Pick<ReplyWriter, 'hides'> = {}) {
    this.#hides = hides
  }

  get outputEvents(): number {
    return this.#said.outputEvents
  }

  get outputBytes(): number {
    return this.#said.outputBytes
  }

  note(events: readonly ReplyEvent[]): void {
    for (const event of events) {
      switch (event.kind) {
        case 'usage-count':
          this.usage = recounted(this.usage, event.usage)
          break
        case 'choice-finish':
          this.finished = true
          break
        case 'reply-end':
          this.ended = true
          break
        case 'failure':
          this.failure ??= event.error
          break
        case 'text-delta':
        case 'thinking-delta':
        case 'refusal-delta':
        case 'tool-call-delta':
          this.#say(event, event.text)
          break
        case 'tool-call-start':
          this.#say(event, event.name)
          break
        case 'thinking-redact':
          this.#say(event, event.data)
          break
        case 'image-add':
          this.images++
          this.#say(event, '')
          break
        case 'hosted-tool-run': // hidden from the client, but done for it: it counts as output
          this.#said.addOutput(0)
          this.hosted = {
            searches: this.hosted.searches + event.searches,
            foundBytes: this.hosted.foundBytes + event.foundBytes,
          }
          break
        case 'thinking-sign': // the reasoning was counted already, but its signature may be all that is shown of it
          this.#show(event)
          break
        case 'reply-start':
        case 'heartbeat':
        case 'citation-add':
          break
      }
    }
  }

  #say(event: ReplyEvent, words: string): void {
    this.#said.addOutput(Buffer.byteLength(words))
    this.#show(event)
  }

  #show(event: ReplyEvent): void {
    this.isOwed ||= this.#hides?.(event) !== true
  }
}

/**
 * A vendor's stream for a client of another protocol: one choice, read and written event by event. Where the vendor
 * sends no whole usage, `estimate` says what is charged, because some protocols have to state it and 0 would be wrong.
 */
export function translateStream(
  reader: ReplyReader,
  writer: ReplyWriter,
  estimate: (facts: StreamFacts) => Usage | undefined,
): ChatStream {
  const facts = new ReplyFacts(writer)
  // By choice. Some servers give a finish before their last output, where clients would stop reading.
  const finishes = new Map<number, ReplyEvent>()
  return {
    facts,
    take(event) {
      const events = reader.read(event)
      facts.note(events)
      // A stream that fails before it showed anything is not begun, so that its failure is an ordinary error answer.
      if (facts.failure !== undefined && !facts.isOwed) return undefined
      for (const one of events) if (one.kind === 'choice-finish') finishes.set(one.choice, one)
      const others = events.filter(({ kind }) => kind !== 'choice-finish')
      return others.length === 0 ? undefined : writer.write(others)
    },
    left: () => void (facts.isOwed = true),
    keepAlive: () => writer.write([{ kind: 'heartbeat' }]),
    closing() {
      const finish = writer.write([...finishes.values()]) ?? new Uint8Array()
      return Buffer.concat([finish, writer.closing(isWhole(facts.usage) ? facts.usage : estimate(facts))])
    },
  }
}
