import type { JsonObject } from '../../base/json.ts'
import type { ChatAsk, ReplyName } from '../../capabilities/chat.ts'
import {
  gap,
  type AssistantBlock,
  type Choice,
  type Reply,
  type ToolCallBlock,
} from '../../capabilities/conversation.ts'
import { estimateReply } from '../../capabilities/estimate-reply.ts'
import { writeSignature } from '../google-signature.ts'
import { argumentsIn, textIn } from '../loose.ts'
import { writeCitation } from './citations.ts'
import { estimateInput } from './estimate.ts'
import { thinkingDisplayFor, writeEnding, writeImageText, type ThinkingDisplay } from './shown.ts'
import { writeCallId } from './tool-ids.ts'
import { namesIn } from './tool-names.ts'
import { writeUsage } from './usage.ts'

/** A reply of any vendor as a message. The protocol has only one choice. */
export function writeAnswer(ask: ChatAsk, reply: Reply, name: ReplyName): Uint8Array {
  const choice: Choice = reply.choices[0] ?? { blocks: [], finish: 'stop' }
  const nameOf = namesIn(ask.native)
  const blocks = choice.blocks.map((block) => {
    return block.kind === 'tool-call' ? { ...block, name: nameOf(block.name) } : block
  })
  const content = writeContent(blocks, thinkingDisplayFor(ask.native))
  const hasCalls = choice.blocks.some(({ kind }) => kind === 'tool-call')
  const isRefused = choice.blocks.some(({ kind }) => kind === 'refusal')
  const { finish, stopSequence } = choice
  const message = {
    ...writeHead(ask, name),
    content,
    ...writeEnding({ finish, stopSequence, isRefused, hasCalls }),
    // Clients calculate with these numbers: where the vendor gave none, they get the estimate that is charged.
    usage: writeUsage(reply.usage ?? { input: estimateInput(ask), output: estimateReply(reply, ask) }),
  }
  return new TextEncoder().encode(JSON.stringify(message))
}

export function writeHead(ask: ChatAsk, { requestId }: ReplyName): JsonObject {
  const id = `msg_${requestId.replace(/^req_/, '')}`
  return { id, type: 'message', role: 'assistant', model: ask.model, container: null }
}

/** Texts around thinking that is not shown must not run into each other, here and when the client sends them back. */
function writeContent(blocks: readonly AssistantBlock[], display: ThinkingDisplay): JsonObject[] {
  const content: JsonObject[] = []
  let isParted = false
  for (const block of blocks) {
    const [first, ...others] = writeBlock(block, display)
    if (first === undefined) {
      isParted = content.at(-1)?.['type'] === 'text'
      continue
    }
    const isApart = isParted && first['type'] === 'text'
    content.push(isApart ? { ...first, text: gap + textIn(first['text']) } : first, ...others)
    isParted = false
  }
  return content
}

function writeBlock(block: AssistantBlock, display: ThinkingDisplay): JsonObject[] {
  switch (block.kind) {
    case 'text': {
      const citations = block.citations?.map(writeCitation) ?? []
      return [{ type: 'text', text: block.text, ...(citations.length > 0 && { citations }) }]
    }
    case 'refusal':
      return [{ type: 'text', text: block.text }]
    case 'image':
      return [{ type: 'text', text: writeImageText(block.media) }]
    case 'thinking':
      return writeThinking(block.text, block.signature, display)
    case 'thinking-redacted':
      return display === 'none' ? [] : [{ type: 'redacted_thinking', data: block.data }]
    case 'tool-call':
      return [
        ...(isCarried(block, display) ? [{ type: 'thinking', thinking: '', signature: block.signature }] : []),
        { ...writeCallHead(block, display), input: argumentsIn(block.argumentsText) },
      ]
  }
}

/** Thinking that the client does not read is written only where it has a signature to send back. */
function writeThinking(text: string, signature: string | undefined, display: ThinkingDisplay): JsonObject[] {
  if (display === 'none' || (display === 'omitted' && signature === undefined)) return []
  return [{ type: 'thinking', thinking: display === 'omitted' ? '' : text, signature: signature ?? '' }]
}

/** What is known of a call when it begins. */
export type CallHead = Pick<ToolCallBlock, 'id' | 'name' | 'signature'>

/**
 * The call's vendor wants its signature back. A thinking block before the call carries it, which every client that
 * asked for thinking sends back. Others may not know such blocks: for them it is a field of the call, which they may
 * ignore.
 */
export function isCarried(call: CallHead, display: ThinkingDisplay): call is CallHead & { readonly signature: string } {
  return call.signature !== undefined && display !== 'none'
}

export function writeCallHead(call: CallHead, display: ThinkingDisplay): JsonObject {
  const head = { type: 'tool_use', id: writeCallId(call.id), name: call.name, input: {}, caller: { type: 'direct' } }
  return isCarried(call, display) ? head : { ...head, ...writeSignature(call.signature) }
}
