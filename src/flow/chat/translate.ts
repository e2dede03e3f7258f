import type { GatewayError } from '../../base/errors.ts'
import type { ChatStream, HostedWork, ReplyReader, ReplyWriter, StreamFacts } from '../../capabilities/chat.ts'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import { SaidOutput } from '../../capabilities/said-output.ts'
import type { Usage } from '../../capabilities/usage.ts'

/** What the events of one vendor stream amount to, as they come. */
export class ReplyFacts implements StreamFacts {
  usage: Usage | undefined
  finished = false
  ended = false
  failure: GatewayError | undefined
  hosted: HostedWork = { searches: 0, foundBytes: 0 }
  readonly #said = new SaidOutput()

  get outputEvents(): number {
    return this.#said.events
  }

  get outputBytes(): number {
    return this.#said.bytes
  }

  note(events: readonly ReplyEvent[]): void {
    for (const event of events) {
      switch (event.kind) {
        case 'usage-count':
          this.usage = event.usage
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
          this.#said.add(event.text.length)
          break
        case 'tool-call-start':
          this.#said.add(event.name.length)
          break
        case 'thinking-redact':
          this.#said.add(event.data.length)
          break
        case 'image-add': // its bytes say nothing about its tokens
          this.#said.add(0)
          break
        case 'hosted-tool-run': // the client may see nothing of it, and it was made for the client all the same
          this.#said.add(0)
          this.hosted = {
            searches: this.hosted.searches + event.searches,
            foundBytes: this.hosted.foundBytes + event.foundBytes,
          }
          break
        case 'reply-start':
        case 'heartbeat':
        case 'thinking-sign':
        case 'citation-add':
          break
      }
    }
  }
}

/**
 * A vendor's stream in its protocol, for a client of another: one choice, read and written event by event. Where the
 * vendor counts nothing, `estimate` says what is charged: some protocols cannot be silent about it, and 0 would be wrong.
 */
export function translateStream(
  reader: ReplyReader,
  writer: ReplyWriter,
  estimate: (facts: StreamFacts) => Usage | undefined,
): ChatStream {
  const facts = new ReplyFacts()
  return {
    facts,
    take(event) {
      const events = reader.read(event)
      facts.note(events)
      return events.length === 0 ? undefined : writer.write(events)
    },
    closing: () => writer.closing(facts.usage ?? estimate(facts)),
  }
}
