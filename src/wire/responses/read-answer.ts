import { GatewayError } from '../../base/errors.ts'
import { isObject, type JsonObject } from '../../base/json.ts'
import {
  gap,
  isCutOff,
  markOpenai,
  type AssistantBlock,
  type Citation,
  type Finish,
  type Reply,
} from '../../capabilities/conversation.ts'
import { answerIn } from '../answer-body.ts'
import { itemsIn, objectIn, objectsIn, textIn } from '../loose.ts'
import { pageOf } from '../openai/read-answer.ts'
import { readFailure } from './errors.ts'
import { readUsage } from './usage.ts'

/** A vendor's whole response as a neutral reply. */
export function readAnswer(body: Uint8Array): Reply {
  const response = readResponse(body)
  const items = objectsIn(response['output'])
  const finish = readFinish(response, items.some(isCall))
  const blocks = readItems(items)
  return {
    choices: [
      {
        finish,
        blocks: blocks.map((block, index) => {
          const isCut = isCutOff(finish) && index === blocks.length - 1
          return isCut ? block : whole(block)
        }),
      },
    ],
    usage: readUsage(response),
  }
}

/** A vendor may send an error or an HTML page with status 200: an answer needs `output`. */
export function readResponse(body: Uint8Array): JsonObject {
  const response = answerIn(body)
  if (isObject(response['error'])) throw readFailure(response['error'])
  if (!Array.isArray(response['output']) || response['status'] === 'failed') {
    throw new GatewayError('upstream-failed', "The model's vendor sent an answer without output.")
  }
  return response
}

function isCall({ type }: JsonObject): boolean {
  return type === 'function_call' || type === 'custom_tool_call'
}

export function readFinish({ status, incomplete_details: details }: JsonObject, hasCalls: boolean): Finish {
  if (status === 'incomplete') return objectIn(details)['reason'] === 'content_filter' ? 'refusal' : 'length'
  return hasCalls ? 'tool-calls' : 'stop'
}

/** A call without arguments gets an empty object. */
function whole(block: AssistantBlock): AssistantBlock {
  return block.kind === 'tool-call' && block.argumentsText === '' ? { ...block, argumentsText: '{}' } : block
}

/**
 * Other protocols join a message to the one right before it, so a gap is written between. Where anything else stands
 * between them, their writers separate the two.
 */
function readItems(items: readonly JsonObject[]): AssistantBlock[] {
  const blocks: AssistantBlock[] = []
  for (const item of items) {
    const [first, ...others] = readItem(item)
    if (first === undefined) continue
    const isNext = first.kind === 'text' && blocks.at(-1)?.kind === 'text'
    blocks.push(isNext ? { ...first, text: gap + first.text } : first, ...others)
  }
  return blocks
}

function readItem(item: JsonObject): AssistantBlock[] {
  switch (textIn(item['type'])) {
    case 'reasoning':
      return readReasoning(item)
    case 'message':
      return objectsIn(item['content']).flatMap(readPart)
    case 'function_call': {
      const { call_id: id, name, arguments: text } = item
      return [{ kind: 'tool-call', id: textIn(id), name: textIn(name), argumentsText: textIn(text).trim() }]
    }
    default: // hosted tools: their results are in the text
      return []
  }
}

function readReasoning(item: JsonObject): AssistantBlock[] {
  const text = reasoningTextIn(item)
  const signature = sealIn(item)
  if (text === '' && signature === undefined) return []
  return [{ kind: 'thinking', text, ...(signature !== undefined && { signature }) }]
}

/** The summary of the reasoning, in however many parts the vendor made it; open models show all of their reasoning. */
export function reasoningTextIn({ summary, content }: JsonObject): string {
  return [...itemsIn(summary), ...itemsIn(content)].map((part) => textIn(objectIn(part)['text'])).join(gap)
}

export function sealIn({ encrypted_content: encrypted }: JsonObject): string | undefined {
  return typeof encrypted === 'string' && encrypted !== '' ? markOpenai(encrypted) : undefined
}

function readPart(part: JsonObject): AssistantBlock[] {
  const { type, text, refusal, annotations } = part
  if (type === 'refusal') return [{ kind: 'refusal', text: textIn(refusal) }]
  if (type !== 'output_text' || textIn(text) === '') return []
  const citations = objectsIn(annotations).flatMap(readCitation)
  return [{ kind: 'text', text: textIn(text), ...(citations.length > 0 && { citations }) }]
}

export function readCitation(annotation: JsonObject): Citation[] {
  return annotation['type'] === 'url_citation' ? [pageOf(annotation)] : []
}
