import { GatewayError } from '../../base/errors.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import {
  isCutOff,
  type AssistantBlock,
  type Choice,
  type Citation,
  type Finish,
  type Reply,
  type ToolCallBlock,
} from '../../capabilities/conversation.ts'
import { readSignature } from '../google-signature.ts'
import { itemsIn, objectIn, objectsIn, textIn } from '../loose.ts'
import { madeCallId } from '../made-call-id.ts'
import { readChoices } from './chat-answer.ts'
import { readUsage } from './usage.ts'

/** A vendor's whole answer in the common protocol, as a neutral reply. */
export function readAnswer(body: Uint8Array): Reply {
  const { json, choices } = readChoices(body)
  return {
    choices: objectsIn(choices).map((choice) => readChoice(choice, json)),
    usage: readUsage(json['usage']),
  }
}

function readChoice(choice: JsonObject, json: JsonObject): Choice {
  const at = typeof choice['index'] === 'number' ? choice['index'] : 0
  const makeId = (call: number) => madeCallId(JSON.stringify([textIn(json['id']), at, call]))
  const blocks = readBlocks(objectIn(choice['message']), sourcesIn(json), makeId)
  const hasCalls = blocks.some(({ kind }) => kind === 'tool-call')
  const { logprobs } = choice
  const finish = readFinish(choice['finish_reason'], hasCalls)
  return {
    blocks: withArguments(blocks, finish),
    finish,
    ...(isObject(logprobs) && { logprobs }),
  }
}

/** A call without arguments gets an empty object, unless it was cut off before they came. */
export function withArguments(blocks: readonly AssistantBlock[], finish: Finish): AssistantBlock[] {
  return blocks.map((block, index) => {
    const isWhole = !isCutOff(finish) || index < blocks.length - 1
    return isWhole && block.kind === 'tool-call' && block.argumentsText === ''
      ? { ...block, argumentsText: '{}' }
      : block
  })
}

const finishes: ReadonlyMap<string, Finish> = new Map([
  ['stop', 'stop'],
  ['length', 'length'],
  ['tool_calls', 'tool-calls'],
  ['function_call', 'tool-calls'],
  ['content_filter', 'refusal'],
  // Words of Mistral, Zhipu and DeepSeek. An answer that the vendor broke off is incomplete, like one at its limit.
  ['model_length', 'length'],
  ['model_context_window_exceeded', 'length'],
  ['insufficient_system_resource', 'length'],
  ['network_error', 'length'],
  ['error', 'length'],
  ['sensitive', 'refusal'],
  // Words of Anthropic and Google, which some relays pass on in this protocol.
  ['max_tokens', 'length'],
  ['MAX_TOKENS', 'length'],
  ['refusal', 'refusal'],
  ['SAFETY', 'refusal'],
])

/** Some vendors give `stop` after calls: a client that is not told of the calls would wait for text. */
export function readFinish(reason: Json | undefined, hasCalls: boolean): Finish {
  const finish = finishes.get(textIn(reason)) ?? 'stop'
  return finish === 'stop' && hasCalls ? 'tool-calls' : finish
}

type MakeId = (call: number) => string

function readBlocks(message: JsonObject, sources: readonly Citation[], makeId: MakeId): AssistantBlock[] {
  const blocks: AssistantBlock[] = []
  const thoughts = reasoningIn(message)
  if (thoughts !== undefined) blocks.push({ kind: 'thinking', text: thoughts })
  const { content, refusal, tool_calls: calls, annotations } = message
  blocks.push(...partsIn(content))
  const citations = [...readCitations(annotations), ...sources]
  const said = blocks.at(-1)
  if (said?.kind === 'text' && citations.length > 0) blocks[blocks.length - 1] = { ...said, citations }
  if (typeof refusal === 'string' && refusal !== '') blocks.push({ kind: 'refusal', text: refusal })
  return [...blocks, ...objectsIn(calls).map((call, index) => readCall(call, makeId(index)))]
}

/** Content is one text or a list of parts. Mistral's models send lists, with their thinking among the parts. */
export function partsIn(content: Json | undefined): { readonly kind: 'text' | 'thinking'; readonly text: string }[] {
  if (typeof content === 'string') return content === '' ? [] : [{ kind: 'text', text: content }]
  const parts: { readonly kind: 'text' | 'thinking'; readonly text: string }[] = []
  for (const part of objectsIn(content)) {
    const { type } = part
    if (type !== 'text' && type !== 'thinking') continue // a reference, for example, which has no text to show
    const text = type === 'text' ? textIn(part['text']) : thinkingTextOf(part['thinking'])
    const last = parts.at(-1)
    if (text === '') continue
    if (last?.kind === type) parts[parts.length - 1] = { kind: type, text: last.text + text }
    else parts.push({ kind: type, text })
  }
  return parts
}

export function thinkingTextOf(thinking: Json | undefined): string {
  return typeof thinking === 'string'
    ? thinking
    : objectsIn(thinking)
        .map(({ text }) => textIn(text))
        .join('')
}

/** DeepSeek's field, which most vendors adopted, or the one of OpenRouter and Groq. */
export function reasoningIn(message: JsonObject): string | undefined {
  return textIn(message['reasoning_content']) || textIn(message['reasoning']) || undefined
}

function readCall(call: JsonObject, madeId: string): ToolCallBlock {
  const { name, arguments: text } = objectIn(call['function'])
  if (typeof name !== 'string' || name === '') {
    throw new GatewayError('upstream-failed', "The model's vendor sent a tool call without a name.")
  }
  const signature = readSignature(call)
  return {
    kind: 'tool-call',
    id: textIn(call['id']) || madeId,
    name,
    argumentsText: argumentsTextIn(text).trim() === '' ? '' : argumentsTextIn(text),
    ...(signature !== undefined && { signature }),
  }
}

/** A string by the protocol; some servers that adopted it send the object itself. */
export function argumentsTextIn(written: Json | undefined): string {
  return isObject(written) ? JSON.stringify(written) : textIn(written)
}

export function readCitations(annotations: Json | undefined): Citation[] {
  return objectsIn(annotations).flatMap(({ url_citation: cited }) => (isObject(cited) ? [pageOf(cited)] : []))
}

/** A cited web page. */
export function pageOf({ url, title }: JsonObject): Citation {
  return { ...(typeof url === 'string' && { url }), ...(typeof title === 'string' && { title }) }
}

/**
 * The pages to which the numbers in a text of Perplexity refer (`[1]`). It lists them beside the choices, in
 * `search_results`, or only their addresses in the older `citations`.
 */
export function sourcesIn({ search_results: found, citations }: JsonObject): Citation[] {
  const pages = objectsIn(found).length > 0 ? objectsIn(found) : itemsIn(citations).map((url): JsonObject => ({ url }))
  return pages.filter(({ url }) => textIn(url) !== '').map(pageOf)
}
