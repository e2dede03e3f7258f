import { disturb } from '../disturb.ts'
import { type Frame, free } from '../event-stream.ts'
import { paddingBy } from '../padding.ts'
import type { ResponsesAsk } from './ask.ts'
import type { Composition, Item, Message, ReasoningItem, ToolCall } from './compose.ts'
import { writeEmptyItem, writeItem, writeLogprobs, writePart, writeResponse, writeSummary } from './write.ts'

/** Billed parts of the answer that were sent but are not counted in tokens. */
export type Progress = { hasSearched: boolean }

/** The events of a stream in order, produced as they are pulled. */
export function frames(ask: ResponsesAsk, composition: Composition, progress: Progress): Generator<Frame, void> {
  const regular = regularFrames(ask, composition, progress)
  const isFailing = ask.steering.text('finish') === 'failed'
  const disturbed = disturb(isFailing ? failing(regular, ask, composition) : regular, ask.steering, {
    error: () =>
      event('error', {
        code: 'server_error',
        message: 'The server had an error while processing your request.',
        param: null,
      }),
    malformed: () => '{"type":"response.output_text.delta","delta":"unfini',
  })
  return numbered(disturbed, ask)
}

const typeAt = '{"type":"'.length

/** Adds its sequence number to every event, and padding to every delta. */
function* numbered(events: Iterable<Frame>, { seed, isPadded }: ResponsesAsk): Generator<Frame, void> {
  const padding = paddingBy(seed)
  let number = 0
  for (const frame of events) {
    if (frame.kind === 'cut') {
      yield frame
      continue
    }
    const at = frame.text.indexOf('"', typeAt) + 1
    const isDelta = frame.text.slice(0, at).endsWith('.delta"') && frame.text.endsWith('}')
    const added = `,"sequence_number":${number}${isPadded && isDelta ? padding() : ''}`
    yield { ...frame, text: `${frame.text.slice(0, at)}${added}${frame.text.slice(at)}` }
    number += 1
  }
}

const framesBeforeFailure = 3

/** `sandbox:finish=failed`: the answer fails after a few words. */
function* failing(regular: Iterable<Frame>, ask: ResponsesAsk, composition: Composition): Generator<Frame, void> {
  let sent = 0
  for (const frame of regular) {
    if (frame.kind === 'end' || sent === framesBeforeFailure) break
    if (frame.kind === 'content') sent += 1
    yield frame
  }
  yield free('framing', lifeEvent('failed', ask, composition, { status: 'failed', output: [] }))
}

function event(type: string, fields: object): string {
  return JSON.stringify({ type, ...fields })
}

function lifeEvent(
  name: 'created' | 'in_progress' | 'completed' | 'incomplete' | 'failed',
  ask: ResponsesAsk,
  composition: Composition,
  state: Parameters<typeof writeResponse>[2],
): string {
  return event(`response.${name}`, { response: writeResponse(ask, composition, state) })
}

function* regularFrames(ask: ResponsesAsk, composition: Composition, progress: Progress): Generator<Frame, void> {
  const begun = { status: 'in_progress', output: [] } as const
  yield free('framing', lifeEvent('created', ask, composition, begun))
  yield free('framing', lifeEvent('in_progress', ask, composition, begun))
  for (const [index, item] of composition.items.entries()) {
    const at = { output_index: index }
    yield free('framing', event('response.output_item.added', { ...at, item: writeEmptyItem(item) }))
    if (item.type === 'web_search_call') progress.hasSearched = true
    yield* itemFrames(ask, item, { item_id: item.id, ...at })
    const { output, reasoning } = costOfEnd(item)
    const text = event('response.output_item.done', { ...at, item: writeItem(ask, item) })
    yield { kind: 'framing', text, output, reasoning }
  }
  const status = composition.cutBy === undefined ? 'completed' : 'incomplete'
  const output = composition.items.map((item) => writeItem(ask, item))
  yield free('end', lifeEvent(status, ask, composition, { status, output }))
}

/** What is not streamed while it is made is charged when its item ends. */
function costOfEnd(item: Item): { readonly output: number; readonly reasoning: number } {
  if (item.type === 'web_search_call') return { output: item.tokens, reasoning: 0 }
  if (item.type === 'tool_search_call') return { output: item.nameTokens + item.input.length, reasoning: 0 }
  if (item.type !== 'reasoning') return { output: 0, reasoning: 0 }
  const hidden = item.tokens - item.summary.length
  return { output: hidden, reasoning: hidden }
}

type At = { readonly item_id: string; readonly output_index: number }

function* itemFrames(ask: ResponsesAsk, item: Item, at: At): Generator<Frame, void> {
  switch (item.type) {
    case 'reasoning':
      return yield* summaryFrames(item, at)
    case 'message':
      return yield* messageFrames(ask, item, at)
    case 'web_search_call':
      for (const state of ['in_progress', 'searching', 'completed'] as const) {
        yield free('framing', event(`response.web_search_call.${state}`, at))
      }
      return
    case 'function_call':
      return yield* callFrames(item, at, 'response.function_call_arguments', 'arguments')
    case 'custom_tool_call':
      return yield* callFrames(item, at, 'response.custom_tool_call_input', 'input')
    // The client's tool search comes in one piece.
    case 'tool_search_call':
  }
}

function* summaryFrames({ summary }: ReasoningItem, item: At): Generator<Frame, void> {
  if (summary.length === 0) return
  const at = { ...item, summary_index: 0 }
  const text = summary.join('')
  yield free('framing', event('response.reasoning_summary_part.added', { ...at, part: writeSummary('') }))
  for (const delta of summary) {
    yield {
      kind: 'content',
      text: event('response.reasoning_summary_text.delta', { ...at, delta }),
      output: 1,
      reasoning: 1,
    }
  }
  yield free('framing', event('response.reasoning_summary_text.done', { ...at, text }))
  yield free('framing', event('response.reasoning_summary_part.done', { ...at, part: writeSummary(text) }))
}

function* messageFrames(ask: ResponsesAsk, message: Message, item: At): Generator<Frame, void> {
  const { part, tokens, citations } = message
  const at = { ...item, content_index: 0 }
  const empty = writePart(ask, { ...message, tokens: [], citations: [] })
  yield free('framing', event('response.content_part.added', { ...at, part: empty }))
  const rounds = ask.steering.has('endless') && tokens.length > 0 ? Infinity : 1
  for (let round = 0; round < rounds; round += 1) {
    for (const delta of tokens) {
      const likely = part === 'refusal' ? {} : { logprobs: writeLogprobs(ask, [delta]) }
      const text = event(`response.${part}.delta`, { ...at, delta, ...likely })
      yield { kind: 'content', text, output: 1, reasoning: 0 }
    }
  }
  for (const [index, annotation] of citations.entries()) {
    const fields = { ...at, annotation_index: index, annotation }
    yield free('framing', event('response.output_text.annotation.added', fields))
  }
  const said = tokens.join('')
  const whole = part === 'refusal' ? { refusal: said } : { text: said, logprobs: writeLogprobs(ask, tokens) }
  yield free('framing', event(`response.${part}.done`, { ...at, ...whole }))
  yield free('framing', event('response.content_part.done', { ...at, part: writePart(ask, message) }))
}

function* callFrames(
  { nameTokens, input, name }: ToolCall,
  at: At,
  type: string,
  field: 'arguments' | 'input',
): Generator<Frame, void> {
  let named = nameTokens
  for (const delta of input) {
    yield { kind: 'content', text: event(`${type}.delta`, { ...at, delta }), output: 1 + named, reasoning: 0 }
    named = 0
  }
  const said = { [field]: input.join(''), ...(field === 'arguments' && { name }) }
  yield { kind: 'framing', text: event(`${type}.done`, { ...at, ...said }), output: named, reasoning: 0 }
}
