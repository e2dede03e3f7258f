import { disturb } from '../disturb.ts'
import { type Frame, free } from '../event-stream.ts'
import type { GeminiAsk } from './ask.ts'
import { type Candidate, type Composition, isWithheld } from './compose.ts'
import { errorBody, errorForStatus } from './errors.ts'
import { writeBlock, writeCall, writeContent, writeFinish, writeLogprobs, writeUsage } from './write.ts'

/** The responses of a stream in order. Each is a complete response that holds only what is new. */
export function frames(ask: GeminiAsk, composition: Composition): Generator<Frame, void> {
  return disturb(regularFrames(ask, composition), ask.steering, {
    error: () => JSON.stringify(errorBody(errorForStatus(500))),
    malformed: () => '{"candidates":[{"content":{"parts":[{"text":"unfini',
  })
}

/**
 * The stream as one JSON array, which the vendor sends without `alt=sse`. A comma is sent with the element after it.
 */
export function* arrayFrames(ask: GeminiAsk, composition: Composition): Generator<Frame, void> {
  let start = '['
  let isWhole = false
  for (const frame of frames(ask, composition)) {
    isWhole = frame.kind === 'end'
    yield frame.kind === 'cut' ? frame : { ...frame, text: start + frame.text }
    start = '\n,\r\n'
  }
  // A stream that was cut leaves its array open; an error event closes it as the last element.
  if (isWhole || ask.steering.has('midstream-error')) yield free('framing', '\n]')
}

/** An event's content before it is written, and what it adds to the bill. */
type Step = { kind: Frame['kind']; candidate: unknown; output: number; reasoning: number }

function* regularFrames(ask: GeminiAsk, composition: Composition): Generator<Frame, void> {
  const { id, model, candidates, units } = composition
  const tail = `,"modelVersion":${JSON.stringify(model)},"responseId":"${id}"}`
  const usage = usageWriter(ask, composition)
  const [candidate] = candidates
  if (candidate === undefined) {
    yield free('end', `{"promptFeedback":${JSON.stringify(writeBlock())}${usage(units)}${tail}`)
    return
  }
  let output = 0
  let reasoning = 0
  for (const step of candidateSteps(ask, candidate)) {
    output += step.output
    reasoning += step.reasoning
    // Every event reports the usage so far; the last one reports what is billed.
    const told = usage(step.kind === 'end' ? units : { ...units, output, reasoning })
    const text = `{"candidates":[${JSON.stringify(step.candidate)}]${told}${tail}`
    yield { kind: step.kind, text, output: step.output, reasoning: step.reasoning }
  }
}

function usageWriter({ steering, counted }: GeminiAsk, { units }: Composition): (usage: typeof units) => string {
  if (steering.has('nousage')) return () => ''
  const isFree = steering.has('zero')
  return (usage) => `,"usageMetadata":${JSON.stringify(writeUsage(counted, isFree ? units : usage))}`
}

function* candidateSteps(ask: GeminiAsk, candidate: Candidate): Generator<Step, void> {
  const { index, thoughts, reasoningTokens, text, textSignature, calls, finish, outputTokens } = candidate
  // Hidden reasoning has no event of its own, so it is charged with the first event after it.
  let hidden = thoughts.length > 0 ? 0 : reasoningTokens
  const step = (part: unknown, tokens: number, more: object = {}): Step => {
    const made = {
      kind: 'content' as const,
      candidate: { content: writeContent([part]), index, ...more },
      output: tokens + hidden,
      reasoning: hidden,
    }
    hidden = 0
    return made
  }
  for (const token of thoughts) yield { ...step({ text: token, thought: true }, 1), reasoning: 1 }
  const rounds = ask.steering.has('endless') && text.length > 0 ? Infinity : 1
  for (let round = 0; round < rounds; round += 1) {
    for (const token of text) {
      const more = ask.alternatives === undefined ? {} : writeLogprobs([token], ask.alternatives)
      yield step({ text: token }, 1, more)
    }
  }
  for (const call of calls) yield step(writeCall(call), call.tokens)
  const delivered = text.length + calls.reduce((sum, call) => sum + call.tokens, 0)
  // A text's signature is known only when the text is over, so it comes on an empty text.
  const last = writeContent([{ text: '', thoughtSignature: textSignature }])
  yield {
    kind: 'end',
    candidate: { ...(!isWithheld(finish) && { content: last }), ...writeFinish(finish), index },
    output: outputTokens - reasoningTokens - delivered + hidden,
    reasoning: hidden,
  }
}
