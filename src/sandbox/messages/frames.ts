import { disturb } from '../disturb.ts'
import { type Frame, free } from '../event-stream.ts'
import type { Steering } from '../steering.ts'
import type { MessagesAsk } from './ask.ts'
import type { Block, Composition } from './compose.ts'
import { errorBody, errorForStatus } from './errors.ts'
import { writeCounts, writeEmptyBlock, writeStart, writeStop } from './write.ts'

/** Billed parts of the answer that were sent but are not counted in tokens. */
export type Progress = { hasSearched: boolean }

/** The events of a stream in order, produced as they are pulled. */
export function frames(ask: MessagesAsk, composition: Composition, progress: Progress): Generator<Frame, void> {
  return disturb(regularFrames(ask, composition, progress), ask.steering, {
    error: () => JSON.stringify(errorBody(errorForStatus(529))),
    malformed: () => '{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"unfini',
  })
}

function* regularFrames(ask: MessagesAsk, composition: Composition, progress: Progress): Generator<Frame, void> {
  const { steering } = ask
  const start = `{"type":"message_start","message":${JSON.stringify(writeStart(ask, composition))}}`
  yield free('framing', start)
  if (steering.has('double-start')) yield free('framing', start)
  for (const [index, block] of composition.blocks.entries()) {
    const opening = JSON.stringify(writeEmptyBlock(block))
    if (block.type === 'web_search_tool_result') progress.hasSearched = true
    // A redacted thinking block comes in one piece and is charged at once.
    const hidden = block.type === 'redacted_thinking' ? block.tokens.length : 0
    const text = `{"type":"content_block_start","index":${index},"content_block":${opening}}`
    yield { kind: 'framing', text, output: hidden, reasoning: hidden }
    if (index === 0) yield free('framing', '{"type":"ping"}')
    yield* blockSteps(steering, index, block)
    yield free('framing', `{"type":"content_block_stop","index":${index}}`)
  }
  const showsUsage = !steering.has('nousage') && !steering.has('start-usage')
  const end = {
    type: 'message_delta',
    delta: { ...writeStop(composition), container: null },
    // undefined leaves the key out
    usage: showsUsage ? writeCounts(composition.units) : undefined,
  }
  yield free('end', JSON.stringify(end))
  yield free('framing', '{"type":"message_stop"}')
}

function* blockSteps(steering: Steering, index: number, block: Block): Generator<Frame, void> {
  const head = `{"type":"content_block_delta","index":${index},"delta":{"type":`
  const step = (kind: Frame['kind'], delta: string, value: unknown, output: number, reasoning = 0): Frame => ({
    kind,
    text: `${head}${delta}:${JSON.stringify(value)}}}`,
    output,
    reasoning,
  })
  switch (block.type) {
    case 'thinking': {
      const { tokens, isShown, signature } = block
      if (isShown) for (const token of tokens) yield step('content', '"thinking_delta","thinking"', token, 1, 1)
      // Thinking that is not shown is charged with its signature.
      const hidden = isShown ? 0 : tokens.length
      yield step('framing', '"signature_delta","signature"', signature, hidden, hidden)
      return
    }
    case 'text': {
      const rounds = steering.has('endless') ? Infinity : 1
      for (let round = 0; round < rounds; round += 1) {
        for (const token of block.tokens) yield step('content', '"text_delta","text"', token, 1)
      }
      for (const citation of block.citations) yield step('framing', '"citations_delta","citation"', citation, 0)
      return
    }
    case 'tool_use':
    case 'server_tool_use': {
      const { nameTokens, input } = block
      // The vendor begins with an empty fragment. An input without properties consists of empty fragments alone.
      yield step('content', '"input_json_delta","partial_json"', '', nameTokens)
      const isEmpty = input.join('') === '{}'
      for (const token of input) yield step('content', '"input_json_delta","partial_json"', isEmpty ? '' : token, 1)
      return
    }
    case 'redacted_thinking':
    case 'web_search_tool_result':
  }
}
