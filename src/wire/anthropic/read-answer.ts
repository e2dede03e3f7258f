import type { Json } from '../../base/json.ts'
import { gap, isCutOff, type AssistantBlock, type Finish, type Reply } from '../../capabilities/conversation.ts'
import { objectIn, parseExactly, textIn } from '../loose.ts'
import { readMessage } from './pass-answer.ts'
import { blocksOf, readAssistantBlocks } from './read-blocks.ts'
import { readUsage } from './usage.ts'

/** A whole answer of this vendor, for clients that speak another protocol. */
export function readAnswer(body: Uint8Array): Reply {
  const message = readMessage(body, parseExactly)
  const stopSequence = message['stop_sequence']
  const finish = readFinish(message['stop_reason'])
  const blocks = readAssistantBlocks(message['content']).map(withGap)
  const last = blocks.at(-1)
  // The vendor shows an empty input where it was cut off inside of one: in its last block, shown here or not.
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

/** What is said before a search of the vendor's own and behind it is elsewhere one text. */
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

export function readFinish(reason: Json | undefined): Finish {
  return finishes.get(textIn(reason)) ?? 'stop'
}

/** Why the model refused, where it says so. */
export function readRefusal(details: Json | undefined): string {
  return textIn(objectIn(details)['explanation'])
}
