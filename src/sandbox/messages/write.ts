import type { Units } from '../bill.ts'
import { parsedOr } from '../fields.ts'
import type { MessagesAsk } from './ask.ts'
import type { Block, Composition } from './compose.ts'

/** The complete answer of a call without streaming, as the vendor writes it. */
export function writeMessage(ask: MessagesAsk, composition: Composition): string {
  return JSON.stringify({
    ...writeHead(composition),
    content: composition.blocks.map(writeBlock),
    ...writeStop(composition),
    // undefined leaves the key out
    usage: ask.steering.has('nousage') ? undefined : writeUsage(composition.units),
  })
}

/** The answer as it begins a stream: no content, and at most one output token. */
export function writeStart(ask: MessagesAsk, composition: Composition): unknown {
  const units = { ...composition.promptUnits, output: Math.min(1, Math.max(0, composition.units.output)) }
  return {
    ...writeHead(composition),
    content: [],
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    usage: ask.steering.has('nousage') ? undefined : writeUsage(units),
  }
}

function writeHead({ id, model }: Composition): object {
  return { id, type: 'message', role: 'assistant', model, container: null }
}

export function writeStop({ stopReason, stopSequence }: Composition): object {
  const details =
    stopReason === 'refusal'
      ? { type: 'refusal', category: 'general_harms', explanation: 'The sandbox was asked to refuse.' }
      : null
  return { stop_reason: stopReason, stop_sequence: stopSequence, stop_details: details }
}

function writeUsage(units: Units): object {
  return {
    ...writeCounts(units),
    cache_creation: {
      ephemeral_5m_input_tokens: units.cacheWrite5m ?? 0,
      ephemeral_1h_input_tokens: units.cacheWrite1h ?? 0,
    },
    service_tier: 'standard',
  }
}

/** The counts that the end of a stream repeats. They are totals, not increments. */
export function writeCounts({ input, cachedInput, output, reasoning, ...units }: Units): object {
  const { cacheWrite5m = 0, cacheWrite1h = 0, webSearches = 0 } = units
  return {
    input_tokens: input,
    cache_creation_input_tokens: cacheWrite5m + cacheWrite1h,
    cache_read_input_tokens: cachedInput,
    output_tokens: output,
    output_tokens_details: { thinking_tokens: reasoning },
    server_tool_use: webSearches > 0 ? { web_search_requests: webSearches, web_fetch_requests: 0 } : null,
  }
}

const direct = { type: 'direct' }

function writeBlock(block: Block): unknown {
  switch (block.type) {
    case 'thinking': {
      const { tokens, isShown, signature } = block
      return { type: 'thinking', thinking: isShown ? tokens.join('') : '', signature }
    }
    case 'text': {
      const { tokens, citations } = block
      return { type: 'text', text: tokens.join(''), ...(citations.length > 0 && { citations }) }
    }
    case 'tool_use':
    case 'server_tool_use':
      // An input that was cut short is written as an empty object.
      return { ...writeEmptyBlock(block), input: parsedOr(block.input.join(''), {}) }
    case 'redacted_thinking':
    case 'web_search_tool_result':
      return writeEmptyBlock(block)
  }
}

/** A block as it starts in a stream: empty where deltas fill it, otherwise complete. */
export function writeEmptyBlock(block: Block): object {
  switch (block.type) {
    case 'thinking':
      return { type: 'thinking', thinking: '', signature: '' }
    case 'redacted_thinking':
      return { type: 'redacted_thinking', data: block.data }
    case 'text':
      return { type: 'text', text: '', ...(block.citations.length > 0 && { citations: [] }) }
    case 'tool_use':
    case 'server_tool_use':
      return { type: block.type, id: block.id, name: block.name, input: {}, caller: direct }
    case 'web_search_tool_result':
      return { type: block.type, tool_use_id: block.id, content: block.results, caller: direct }
  }
}
