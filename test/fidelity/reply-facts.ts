import { chatCall, geminiCall, messagesCall, type Call } from './ask-facts.ts'
import type { Speech } from './corpus.ts'
import { fieldsIn, objectsIn, textIn, type Fields, type Value } from './exact-json.ts'
import { readResponse, readResponseUsage } from './responses-facts.ts'

/** What an answer says, read from each protocol without the gateway's code. */
export type ReplyFacts = {
  /** All visible reasoning as one text. */
  readonly thinking: string
  /** Signed reasoning, to be sent back. */
  readonly signed: readonly { readonly text: string; readonly signature: string }[]
  readonly hidden: readonly string[]
  readonly text: string
  readonly calls: readonly Call[]
  readonly finish: string
  readonly stopSequence: string
}

export function readReply(language: Speech, body: Fields): ReplyFacts {
  const read = { common: readChoice, anthropic: readMessage, google: readCandidate, responses: readResponse }
  return read[language](body)
}

const chatFinishes: Readonly<Record<string, string>> = {
  tool_calls: 'calls',
  function_call: 'calls',
  content_filter: 'refusal',
}

function readChoice(body: Fields): ReplyFacts {
  const { message, finish_reason: finish } = fieldsIn(objectsIn(body['choices'])[0])
  const {
    content,
    reasoning_content: thinking,
    thinking_blocks: blocks,
    tool_calls: calls,
    function_call: legacy,
  } = fieldsIn(message)
  const thoughts = objectsIn(blocks)
  return {
    thinking: textIn(thinking),
    signed: signedIn(thoughts),
    hidden: hiddenIn(thoughts),
    text: textIn(content),
    calls: [...objectsIn(calls).map(chatCall), ...(legacy === undefined ? [] : [chatCall({ function: legacy })])],
    finish: chatFinishes[textIn(finish)] ?? textIn(finish),
    stopSequence: '',
  }
}

function signedIn(blocks: readonly Fields[]): ReplyFacts['signed'] {
  return blocks.flatMap(({ type, thinking, signature }) => {
    const isOurs = type === 'thinking' && textIn(signature) !== '' && !textIn(signature).startsWith('google:')
    return isOurs ? [{ text: textIn(thinking), signature: textIn(signature) }] : []
  })
}

function hiddenIn(blocks: readonly Fields[]): string[] {
  return blocks.flatMap(({ type, data }) => (type === 'redacted_thinking' ? [textIn(data)] : []))
}

const stopReasons: Readonly<Record<string, string>> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  tool_use: 'calls',
}

function readMessage(body: Fields): ReplyFacts {
  const blocks = objectsIn(body['content'])
  const joined = (name: 'text' | 'thinking') => blocks.map((block) => textIn(block[name])).join('')
  const reason = textIn(body['stop_reason'])
  return {
    thinking: joined('thinking'),
    signed: signedIn(blocks),
    hidden: hiddenIn(blocks),
    text: joined('text'),
    calls: blocks.flatMap((block, at) => (block['type'] === 'tool_use' ? [messagesCall(block, blocks[at - 1])] : [])),
    finish: stopReasons[reason] ?? reason,
    stopSequence: textIn(body['stop_sequence']),
  }
}

const finishReasons: Readonly<Record<string, string>> = { STOP: 'stop', MAX_TOKENS: 'length', SAFETY: 'refusal' }

function readCandidate(body: Fields): ReplyFacts {
  const { content, finishReason } = fieldsIn(objectsIn(body['candidates'])[0])
  const parts = objectsIn(fieldsIn(content)['parts'])
  const joined = (isThought: boolean) =>
    parts.flatMap(({ text, thought }) => ((thought === true) === isThought ? [textIn(text)] : [])).join('')
  const calls = parts.flatMap((part) =>
    part['functionCall'] === undefined ? [] : [geminiCall(fieldsIn(part['functionCall']), part['thoughtSignature'])],
  )
  const finish = finishReasons[textIn(finishReason)] ?? textIn(finishReason)
  return {
    thinking: joined(true),
    signed: [],
    hidden: [],
    text: joined(false),
    calls,
    finish: finish === 'stop' && calls.length > 0 ? 'calls' : finish,
    stopSequence: '',
  }
}

/** The usage that a client is told. No token is counted twice, except that `output` includes `reasoning`. */
export type UsageFacts = {
  readonly input: number
  readonly cached: number
  readonly written: number
  readonly output: number
  readonly reasoning: number
}

export function readUsage(language: Exclude<Speech, 'google'>, body: Fields): UsageFacts {
  const usage = fieldsIn(body['usage'])
  if (language === 'responses') return readResponseUsage(body)
  if (language === 'anthropic') {
    return {
      input: count(usage['input_tokens']),
      cached: count(usage['cache_read_input_tokens']),
      written: count(usage['cache_creation_input_tokens']),
      output: count(usage['output_tokens']),
      reasoning: count(fieldsIn(usage['output_tokens_details'])['thinking_tokens']),
    }
  }
  const { cached_tokens: cached, cache_write_tokens: written } = fieldsIn(usage['prompt_tokens_details'])
  return {
    input: count(usage['prompt_tokens']) - count(cached) - count(written),
    cached: count(cached),
    written: count(written),
    output: count(usage['completion_tokens']),
    reasoning: count(fieldsIn(usage['completion_tokens_details'])['reasoning_tokens']),
  }
}

function count(value: Value | undefined): number {
  return typeof value === 'number' ? value : 0
}
