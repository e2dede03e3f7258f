import type { JsonObject } from '../../base/json.ts'
import { unixSeconds } from '../../base/moment.ts'
import type { ChatAsk, ReplyName } from '../../capabilities/chat.ts'
import type { AssistantBlock, Choice, Citation, Finish, MediaBytes, Reply } from '../../capabilities/conversation.ts'
import { CitedText } from '../cited-text.ts'
import { dataUrlOf } from '../media-url.ts'
import { isLegacy, legacyFinish, writeFunctionCall } from './legacy-functions.ts'
import { writeUsage } from './usage.ts'
import { textsOf, writeCall } from './write-messages.ts'

/** A reply as a whole answer of the common protocol. */
export function writeAnswer(ask: ChatAsk, reply: Reply, name: ReplyName): Uint8Array {
  const answer = {
    ...writeHead(ask, name, 'chat.completion'),
    choices: reply.choices.map((choice, index) => writeChoice(choice, index, isLegacy(ask))),
    ...(reply.usage !== undefined && { usage: writeUsage(reply.usage) }),
    // No other vendor has one, but clients that check an answer by OpenRouter's types require the field.
    system_fingerprint: null,
  }
  return new TextEncoder().encode(JSON.stringify(answer))
}

export function writeHead(ask: ChatAsk, { requestId, createdAt }: ReplyName, object: string) {
  return {
    id: `chatcmpl-${requestId.replace(/^req_/, '')}`,
    object,
    created: unixSeconds(createdAt),
    model: ask.model,
  }
}

function writeChoice({ blocks, finish, logprobs }: Choice, index: number, legacy: boolean): JsonObject {
  const message = writeMessage(blocks)
  return {
    index,
    message: legacy ? writeFunctionCall(message) : message,
    logprobs: logprobs ?? null,
    finish_reason: writeFinish(finish, legacy),
  }
}

export function writeFinish(finish: Finish, legacy: boolean): string {
  return legacy && finish === 'tool-calls' ? legacyFinish : finishReasons[finish]
}

const finishReasons = {
  stop: 'stop',
  'stop-sequence': 'stop',
  // A turn that the vendor paused ends here, because the client has no way to resume it.
  pause: 'stop',
  length: 'length',
  'tool-calls': 'tool_calls',
  refusal: 'content_filter',
} as const satisfies Record<Finish, string>

function writeMessage(blocks: readonly AssistantBlock[]): JsonObject {
  const texts = textsOf(blocks)
  const text = texts.join('')
  const cited = new CitedText()
  let thoughts = ''
  let refusal = ''
  const calls: JsonObject[] = []
  const signed: JsonObject[] = []
  const annotations: JsonObject[] = []
  const images: JsonObject[] = []
  for (const [index, block] of blocks.entries()) {
    switch (block.kind) {
      case 'text':
        cited.grow(texts[index] ?? '')
        annotations.push(...(block.citations ?? []).flatMap((citation) => writeCitation(citation, cited)))
        break
      case 'thinking':
        thoughts += block.text
        signed.push(writeThinkingBlock(block.text, block.signature))
        break
      case 'thinking-redacted':
        signed.push({ type: 'redacted_thinking', data: block.data })
        break
      case 'refusal':
        refusal += block.text
        break
      case 'tool-call':
        calls.push(writeCall(block))
        break
      case 'image':
        if (block.media.kind === 'bytes') images.push(writeImage(block.media))
        break
    }
  }
  return {
    role: 'assistant',
    content: text === '' && (calls.length > 0 || refusal !== '') ? null : text,
    refusal: refusal === '' ? null : refusal,
    ...(thoughts !== '' && { reasoning_content: thoughts }),
    ...(signed.some(isWorthKeeping) && { thinking_blocks: signed }),
    ...(calls.length > 0 && { tool_calls: calls }),
    ...(annotations.length > 0 && { annotations }),
    ...(images.length > 0 && { images }),
  }
}

/** Thinking as a client must send it back; without a signature no vendor would take it. */
export function writeThinkingBlock(thinking: string, signature: string | undefined): JsonObject {
  return { type: 'thinking', thinking, ...(signature !== undefined && { signature }) }
}

function isWorthKeeping(block: JsonObject): boolean {
  return block['signature'] !== undefined || block['data'] !== undefined
}

/** The common protocol has no images in replies; this is the form that other gateways use. */
export function writeImage(image: MediaBytes): JsonObject {
  return { type: 'image_url', image_url: { url: dataUrlOf(image) } }
}

/** The protocol has citations of web pages only. */
export function writeCitation({ url, title }: Citation, cited: CitedText): JsonObject[] {
  if (url === undefined) return []
  return [{ type: 'url_citation', url_citation: { url, title: title ?? url, ...cited.cite() } }]
}
