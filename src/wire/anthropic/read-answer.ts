import type { Json } from '../../base/json.ts'
import { gap, isCutOff, type AssistantBlock, type Finish, type Reply } from '../../capabilities/conversation.ts'
import { objectIn, parseExactly, textIn } from '../loose.ts'
import { readMessage } from './pass-answer.ts'
import { blocksOf, readAssistantBlocks } from './read-blocks.ts'
import { readUsage } from './usage.ts'

/** Reads a whole answer of this vendor, for clients that speak another protocol. */
export function readAnswer(body: Uint8Array): Reply {
  const message = readMessage(body, parseExactly)
  const stopSequence = message['stop_sequence']
  const blocks = readAssistantBlocks(message['content']).map(withGap)
  const hasCalls = blocks.some(({ kind }) => kind === 'tool-call')
  const finish = readFinish(message['stop_reason'], hasCalls)
  const last = blocks.at(-1)
  // Where a reply is cut off inside a call's input, always in its last block, the vendor shows an empty input.
  const isLast = blocksOf(message['content']).at(-1)?.['type'] === 'tool_use'
  if (isCutOff(finish) && isLast && last?.kind === 'tool-call' && last.argumentsText === '{}') {
    blocks[blocks.length - 1] = { ...last, argumentsText: '' }
  }
  const refusal = readRefusal(message['stop_details'])
  if (refusal !== '') blocks.push({ kind: 'refusal', text: refusal })
  return {
    choices: [
      {
        blocks,
        finish,
        ...(typeof stopSequence === 'string' && { stopSequence }),
      },
    ],
    usage: readUsage(message['usage']),
  }
}

/** Other protocols join the text before and after a hosted search into one, so a gap is written between. */
function withGap(block: AssistantBlock): AssistantBlock {
  if (block.kind !== 'text' || block.isApart !== true) return block
  const { isApart: _, ...text } = block
  return { ...text, text: gap + text.text }
}

const finishes: ReadonlyMap<string, Finish> = new Map([
  ['end_turn', 'stop'],
  ['stop_sequence', 'stop-sequence'],
  ['max_tokens', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['tool_use', 'tool-calls'],
  ['pause_turn', 'pause'],
  ['refusal', 'refusal'],
])

/** Clients run the calls of a reply only if it ends with them, and some servers of this protocol end it otherwise. */
export function readFinish(reason: Json | undefined, hasCalls: boolean): Finish {
  const finish = finishes.get(textIn(reason)) ?? 'stop'
  return hasCalls && (finish === 'stop' || finish === 'stop-sequence') ? 'tool-calls' : finish
}

/** The model's reason for a refusal, where it gives one. */
export function readRefusal(details: Json | undefined): string {
  return textIn(objectIn(details)['explanation'])
}
