import { normal, placesIn, type AskFacts, type Call } from './ask-facts.ts'
import { fieldsIn, itemsIn, objectsIn, parse, textIn, type Fields, type Value } from './exact-json.ts'
import type { ReplyFacts, UsageFacts } from './reply-facts.ts'

/** Facts of requests and answers in the responses protocol, as clients and OpenAI speak it. */

/** What the gateway or OpenAI stored in `encrypted_content`, which clients send back unread. */
function unsealed({ encrypted_content: content, summary }: Fields): Fields {
  const sealed = textIn(content)
  if (sealed.startsWith('tpk_')) return fieldsIn(parse(Buffer.from(sealed.slice(4), 'base64url').toString()))
  if (sealed === '') return {}
  const text = objectsIn(summary)
    .map((part) => textIn(part['text']))
    .join('')
  return { kind: 'thought', text, signature: `openai:${sealed}` }
}

const googleMark = 'google:'

/** A call, with Google's signature from the call itself or from the item before it. */
function callOf(item: Fields, before: Fields | undefined): Call {
  const { type, call_id: id, name, namespace, arguments: text, input, extra_content: extra } = item
  const carried = before?.['type'] === 'reasoning' ? unsealed(before) : {}
  const signature = carried['kind'] === 'call' ? textIn(carried['signature']).slice(googleMark.length) : undefined
  const shown = fieldsIn(fieldsIn(extra)['google'])['thought_signature']
  return {
    id: textIn(id),
    // In protocols without namespaces, the name of a tool begins with its namespace.
    name: namespace === undefined ? textIn(name) : `${textIn(namespace)}__${textIn(name)}`,
    input: normal(type === 'custom_tool_call' ? JSON.stringify({ input: textIn(input) }) : textIn(text) || '{}'),
    signature: signature ?? (typeof shown === 'string' ? shown : undefined),
  }
}

function isCall({ type }: Fields): boolean {
  return type === 'function_call' || type === 'custom_tool_call'
}

/** Reads the facts of a request into the empty facts that are given. */
export function readResponses(facts: AskFacts, body: Fields): AskFacts {
  const { instructions, input, tools, tool_choice: choice } = body
  if (textIn(instructions) !== '') facts.instructions.push(textIn(instructions))
  const items = typeof input === 'string' ? [{ role: 'user', content: input }] : objectsIn(input)
  for (const [at, item] of items.entries()) readItem(facts, item, items[at - 1])
  const later = items.flatMap((item) => (item.type === 'additional_tools' ? objectsIn(item.tools) : []))
  facts.tools = [...objectsIn(tools), ...later].flatMap((tool) => toolsOf(tool))
  const { mode, name, tools: allowed } = fieldsIn(choice)
  facts.choice =
    typeof choice === 'string' ? choice : textIn(mode) || (name === undefined ? 'auto' : `only ${textIn(name)}`)
  const names = objectsIn(allowed).map((tool) => textIn(tool['name']))
  if (names.length > 0) facts.tools = facts.tools.filter((tool) => names.includes(tool.name))
  facts.isAlone = body['parallel_tool_calls'] === false
  facts.cap = Number(body['max_output_tokens'] ?? Number.NaN) || undefined
  facts.schema = placesIn(fieldsIn(fieldsIn(body['text'])['format'])['schema'])
  return facts
}

function toolsOf(tool: Fields, namespace = ''): AskFacts['tools'] {
  const { type, name, description, parameters, format, tools } = tool
  if (type === 'namespace') return objectsIn(tools).flatMap((inside) => toolsOf(inside, `${textIn(name)}__`))
  if (type === 'web_search') return []
  const { syntax, definition } = fieldsIn(format)
  const grammar = `\n\nThe input must follow this ${textIn(syntax)} grammar:\n${textIn(definition)}`
  return [
    {
      name: namespace + textIn(name),
      description: textIn(description) + (syntax === undefined ? '' : grammar),
      takes: type === 'custom' ? ['input'] : placesIn(parameters),
      isWaiting: false,
    },
  ]
}

function readItem(facts: AskFacts, item: Fields, before: Fields | undefined): void {
  const { type, role, content, call_id: id, output } = item
  if (isCall(item)) facts.calls.push(callOf(item, before))
  if (type === 'reasoning') readThought(facts, item)
  if (output !== undefined) {
    const call = facts.calls.findLastIndex((known) => known.id === id)
    const texts = typeof output === 'string' ? [output] : objectsIn(output).map(({ text }) => textIn(text))
    facts.results.push({ call, text: normal(texts.join('\n')), isError: false })
    for (const part of objectsIn(output)) readMedia(facts, part)
  }
  const parts: readonly Fields[] = typeof content === 'string' ? [{ text: content }] : objectsIn(content)
  for (const part of role === undefined ? [] : parts) {
    const text = textIn(part['text']) || textIn(part['refusal'])
    if (role === 'system' || role === 'developer') facts.instructions.push(...(text.trim() === '' ? [] : [text]))
    else if (text.trim() !== '') facts.said.push({ by: role === 'assistant' ? 'assistant' : 'user', text })
    readMedia(facts, part)
  }
}

function readThought(facts: AskFacts, item: Fields): void {
  const { kind, text, signature, data } = unsealed(item)
  if (kind === 'redacted') facts.hidden.push(textIn(data))
  if (kind === 'thought' && signature !== undefined) {
    facts.thoughts.push({ text: textIn(text), signature: textIn(signature) })
  }
}

function mediaIn(written: Value | undefined): string {
  const [, mediaType = '', base64] = /^data:([^;,]+);base64,(.*)$/s.exec(textIn(written)) ?? []
  if (base64 === undefined) return textIn(written)
  return mediaType.startsWith('text/') ? Buffer.from(base64, 'base64').toString() : `${mediaType} ${base64}`
}

function readMedia(facts: AskFacts, { type, image_url: url, file_data: data, filename }: Fields): void {
  if (type === 'input_image') facts.images.push(mediaIn(url))
  if (type !== 'input_file') return
  facts.documents.push(mediaIn(data))
  facts.labels.push(textIn(filename))
}

const incomplete: Readonly<Record<string, string>> = { max_output_tokens: 'length', content_filter: 'refusal' }

export function readResponse(body: Fields): ReplyFacts {
  const output = objectsIn(body['output'])
  const parts = output.flatMap(({ content }) => objectsIn(content))
  const seals = output.filter(({ type }) => type === 'reasoning').map(unsealed)
  const calls = output.flatMap((item, at) => (isCall(item) ? [callOf(item, output[at - 1])] : []))
  const reason = textIn(fieldsIn(body['incomplete_details'])['reason'])
  return {
    thinking: output.flatMap(({ summary }) => objectsIn(summary).map(({ text }) => textIn(text))).join(''),
    signed: seals.flatMap(({ kind, text, signature }) =>
      kind === 'thought' && signature !== undefined ? [{ text: textIn(text), signature: textIn(signature) }] : [],
    ),
    hidden: seals.flatMap(({ kind, data }) => (kind === 'redacted' ? [textIn(data)] : [])),
    text: parts.map(({ text }) => textIn(text)).join(''),
    calls,
    finish: incomplete[reason] ?? (calls.length > 0 ? 'calls' : 'stop'),
    stopSequence: '',
  }
}

export function readResponseUsage(body: Fields): UsageFacts {
  const { input_tokens: input, output_tokens: output, ...details } = fieldsIn(body['usage'])
  const { cached_tokens: cached, cache_write_tokens: written } = fieldsIn(details['input_tokens_details'])
  return {
    input: Number(input) - Number(cached) - Number(written),
    cached: Number(cached),
    written: Number(written),
    output: Number(output),
    reasoning: Number(fieldsIn(details['output_tokens_details'])['reasoning_tokens']),
  }
}

/** Whether the client wants to see reasoning, and whether it wants sealed reasoning to send back. */
export function wishesOf(request: Fields): { readonly isShown: boolean; readonly isSealed: boolean } {
  return {
    isShown: fieldsIn(request['reasoning'])['summary'] !== undefined,
    isSealed: itemsIn(request['include']).includes('reasoning.encrypted_content'),
  }
}
