import type { GatewayError } from '../../base/errors.ts'
import type { ChatStream, ReplyReader, ReplyWriter, StreamFacts } from '../../capabilities/chat.ts'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import type { Usage } from '../../capabilities/usage.ts'

/** What the events of one vendor stream amount to, as they come. */
export class ReplyFacts implements StreamFacts {
  usage: Usage | undefined
  finished = false
  ended = false
  failure: GatewayError | undefined
  outputEvents = 0
  outputBytes = 0

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
          this.outputEvents++
          this.outputBytes += event.text.length
          break
        case 'tool-call-start':
          this.outputEvents++
          this.outputBytes += event.name.length
          break
      }
    }
  }
}

/** A vendor's stream in its protocol, for a client of another: one choice, read and written event by event. */
export function translateStream(reader: ReplyReader, writer: ReplyWriter): ChatStream {
  const facts = new ReplyFacts()
  return {
    facts,
    take(event) {
      const events = reader.read(event)
      facts.note(events)
      return events.length === 0 ? undefined : writer.write(events)
    },
    closing: () => writer.closing(facts.usage),
  }
}
