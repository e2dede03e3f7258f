import { unreachable } from '../../base/errors.ts'
import type { ChatAsk, ReplyName, ReplyWriter } from '../../capabilities/chat.ts'
import type { Finish, ReplyEvent } from '../../capabilities/conversation.ts'
import { commonError, responseError } from './errors.ts'
import { estimateInput } from './estimate.ts'
import type { Output, OutputEvent } from './output.ts'
import { openResponse, statusOf } from './response.ts'
import { openOutput } from './write-answer.ts'

const encoder = new TextEncoder()
// A comment, which every SSE reader skips; the official clients throw at an unknown event. It is a line of the next
// event: older versions of OpenAI's client for Go take an empty line of its own for an event without data, and fail.
export const heartbeat = ': waiting\n'
// A model may think for minutes while nothing is shown: a heartbeat now and then keeps the client's connection open.
const hiddenDeltasPerHeartbeat = 50

/** Writes a reply, as it is made, as events of this protocol, each with its type and its sequence number. */
export function openWriter(ask: ChatAsk, name: ReplyName): ReplyWriter {
  const output = openOutput(ask, name)
  const writeResponse = openResponse(ask, name)
  let sequence = 0
  let isStarted = false
  let finish: Finish | undefined
  let hiddenDeltas = 0

  function eventOf(type: string, rest: string): string {
    return `event: ${type}\ndata: {"type":"${type}","sequence_number":${sequence++},${rest}}\n\n`
  }

  function write(events: readonly OutputEvent[]): string {
    let text = ''
    for (const { type, fields } of events) text += eventOf(type, JSON.stringify(fields).slice(1, -1))
    return text
  }

  function start(): string {
    if (isStarted) return ''
    isStarted = true
    const response = `"response":${writeResponse({ status: 'in_progress', output: [] })}`
    return eventOf('response.created', response) + eventOf('response.in_progress', response)
  }

  function hide(): string {
    return ++hiddenDeltas % hiddenDeltasPerHeartbeat === 0 ? heartbeat : ''
  }

  return {
    write(events) {
      let text = ''
      for (const event of events) {
        if ('choice' in event && event.choice !== 0) continue // the protocol has one choice
        if (isSilent(event)) continue
        if (event.kind === 'heartbeat' || event.kind === 'hosted-tool-run') {
          text += isStarted ? heartbeat : ''
          continue
        }
        text += start()
        if (event.kind === 'choice-finish') ({ finish } = event)
        const written = write(put(output, event))
        text += written === '' && event.kind === 'thinking-delta' ? hide() : written
      }
      return text === '' ? undefined : encoder.encode(text)
    },
    hides: (event) => output.hides(event),
    closing(usage) {
      const status = statusOf(finish)
      const ending = start() + write(output.finish(status))
      const { items } = output
      // Without usage there was no output.
      const counted = usage ?? { input: estimateInput(ask), output: 0 }
      const response = writeResponse({ status, finish, output: items, usage: counted })
      return encoder.encode(ending + eventOf(`response.${status}`, `"response":${response}`))
    },
    /** Official clients throw where the event itself has an `error`; other clients read the failed response. */
    failing(error) {
      output.breakOff()
      const response = writeResponse({ status: 'failed', output: output.items, error: responseError(error) })
      return encoder.encode(
        eventOf('response.failed', `"response":${response},"error":${JSON.stringify(commonError(error))}`),
      )
    },
  }
}

/** Usage is written at the end, and a failure by `failing`. */
function isSilent({ kind }: ReplyEvent): boolean {
  return kind === 'usage-count' || kind === 'failure'
}

function put(output: Output, event: ReplyEvent): OutputEvent[] {
  switch (event.kind) {
    case 'text-delta':
      return output.say(event.text, event.logprobs)
    case 'refusal-delta':
      return output.refuse(event.text)
    case 'citation-add':
      return output.cite(event.citation)
    case 'thinking-delta':
      return output.think(event.text)
    case 'thinking-sign':
      return output.sign(event.text, event.signature)
    case 'thinking-redact':
      return output.redact(event.data)
    case 'image-add':
      return output.show(event.media)
    case 'tool-call-start':
      return output.startCall(event.call, event)
    case 'tool-call-delta':
      return output.growCall(event.call, event.text)
    case 'choice-finish':
      return output.finish(statusOf(event.finish))
    case 'reply-start':
    case 'reply-end':
    case 'usage-count':
    case 'heartbeat':
    case 'hosted-tool-run':
    case 'failure':
      return []
    default:
      return unreachable(event)
  }
}
