import type { Speech } from './corpus.ts'
import {
  canonical,
  fieldsIn,
  isFields,
  itemsIn,
  objectsIn,
  parse,
  textIn,
  type Fields,
  type Value,
} from './exact-json.ts'
import { readResponses } from './responses-facts.ts'

/**
 * What a request says, read from each protocol as its documentation defines it, without the gateway's code. The same
 * reader reads what a client sent and what a vendor received.
 */
export type AskFacts = {
  readonly instructions: string[]
  readonly said: { by: 'user' | 'assistant'; text: string }[]
  readonly calls: Call[]
  readonly results: { call: number; text: string; isError: boolean }[]
  readonly images: string[]
  readonly documents: string[]
  /** Names and notes of documents and tools, which only have to appear somewhere. */
  readonly labels: string[]
  /** Reasoning signed by Anthropic or sealed by OpenAI. */
  readonly thoughts: { text: string; signature: string }[]
  readonly hidden: string[]
  tools: Tool[]
  choice: string
  isAlone: boolean
  stop: string[]
  cap: number | undefined
  /** The paths of all properties in the schema of the answer. */
  schema: string[]
}

export type Call = {
  readonly id: string
  readonly name: string
  readonly input: string
  /** Google's. */
  readonly signature: string | undefined
}
type Tool = {
  readonly name: string
  readonly description: string
  readonly takes: readonly string[]
  /** A deferred tool that no search has found yet. */
  readonly isWaiting: boolean
}

function noFacts(): AskFacts {
  return {
    instructions: [],
    said: [],
    calls: [],
    results: [],
    images: [],
    documents: [],
    labels: [],
    thoughts: [],
    hidden: [],
    tools: [],
    choice: 'auto',
    isAlone: false,
    stop: [],
    cap: undefined,
    schema: [],
  }
}

export function readFacts(language: Speech, body: Fields): AskFacts {
  if (language === 'responses') return readResponses(noFacts(), body)
  return { common: readChat, anthropic: readMessages, google: readGemini }[language](body)
}

function textsOf(content: Value | undefined): string[] {
  const texts = typeof content === 'string' ? [content] : objectsIn(content).map(({ text }) => textIn(text))
  return texts.filter((text) => text.trim() !== '')
}

/** One spelling for equal JSON objects, and for texts that differ only in white space. */
export function normal(text: string): string {
  try {
    const parsed = parse(text)
    if (isFields(parsed)) return canonical(parsed)
  } catch {
    // Not JSON: plain text.
  }
  return text.replaceAll(/\s+/g, ' ').trim()
}

/** The bytes of an image, or the text of a text file. */
function media(type: string, base64: string): string {
  return type.startsWith('text/') ? Buffer.from(base64, 'base64').toString() : `${type} ${base64}`
}

function mediaOfUrl(url: string): string {
  const [, type, base64] = /^data:([^;,]+);base64,(.*)$/s.exec(url) ?? []
  return type === undefined || base64 === undefined ? url : media(type, base64)
}

function lastCall(facts: AskFacts, id: string, by: 'id' | 'name'): number {
  return facts.calls.findLastIndex((call) => call[by] === id)
}

function readChat(body: Fields): AskFacts {
  const facts = noFacts()
  for (const message of objectsIn(body['messages'])) readChatMessage(facts, message)
  const { tools, functions, tool_choice: choice, function_call: legacyChoice } = body
  const offered = [...objectsIn(tools).map((tool) => fieldsIn(tool['function'])), ...objectsIn(functions)]
  facts.tools = offered.map((tool) => toolOf(tool, tool['parameters']))
  facts.choice = chatChoice(choice ?? legacyChoice)
  const allowed = objectsIn(fieldsIn(fieldsIn(choice)['allowed_tools'])['tools']).map(
    (tool) => fieldsIn(tool['function'])['name'],
  )
  if (allowed.length > 0) facts.tools = facts.tools.filter(({ name }) => allowed.includes(name))
  // The retired functions are called one at a time.
  facts.isAlone = body['parallel_tool_calls'] === false || functions !== undefined
  const { stop } = body
  facts.stop = typeof stop === 'string' ? [stop] : itemsIn(stop).map(textIn)
  facts.cap = Number(body['max_completion_tokens'] ?? body['max_tokens'] ?? Number.NaN) || undefined
  facts.schema = placesIn(fieldsIn(fieldsIn(body['response_format'])['json_schema'])['schema'])
  return facts
}

function chatChoice(choice: Value | undefined): string {
  if (typeof choice === 'string') return choice
  const { name, function: named, allowed_tools: allowed } = fieldsIn(choice)
  if (allowed !== undefined) return textIn(fieldsIn(allowed)['mode'])
  const only = textIn(name) || textIn(fieldsIn(named)['name'])
  return only === '' ? 'auto' : `only ${only}`
}

function readChatMessage(facts: AskFacts, message: Fields): void {
  const { role, content, tool_calls: calls, function_call: legacy, refusal, tool_call_id: id, name } = message
  switch (textIn(role)) {
    case 'system':
    case 'developer':
      facts.instructions.push(...textsOf(content))
      return
    case 'tool':
    case 'function': {
      const call = role === 'tool' ? lastCall(facts, textIn(id), 'id') : lastCall(facts, textIn(name), 'name')
      facts.results.push({ call, text: normal(textsOf(content).join('\n')), isError: false })
      return
    }
    case 'user':
      if (typeof content === 'string')
        facts.said.push(...textsOf(content).map((text) => ({ by: 'user' as const, text })))
      for (const part of objectsIn(content)) readChatPart(facts, part)
      return
    default:
  }
  for (const block of objectsIn(message['thinking_blocks'])) readThought(facts, block)
  const texts = [...textsOf(content), ...objectsIn(content).map((part) => textIn(part['refusal'])), textIn(refusal)]
  facts.said.push(...texts.filter((text) => text !== '').map((text) => ({ by: 'assistant' as const, text })))
  for (const call of objectsIn(calls)) facts.calls.push(chatCall(call))
  if (isFields(legacy)) facts.calls.push(chatCall({ id: '', function: legacy }))
}

export function chatCall({ id, function: named, extra_content: extra }: Fields): Call {
  const { name, arguments: text } = fieldsIn(named)
  const signature = fieldsIn(fieldsIn(extra)['google'])['thought_signature']
  return {
    id: textIn(id),
    name: textIn(name),
    input: normal(textIn(text) || '{}'),
    signature: typeof signature === 'string' ? signature : undefined,
  }
}

function readChatPart(facts: AskFacts, part: Fields): void {
  const { type, text, image_url: image, file } = part
  if (type === 'text') facts.said.push({ by: 'user', text: textIn(text) })
  if (type === 'image_url') facts.images.push(mediaOfUrl(textIn(fieldsIn(image)['url'])))
  if (type === 'file') {
    facts.documents.push(mediaOfUrl(textIn(fieldsIn(file)['file_data'])))
    facts.labels.push(textIn(fieldsIn(file)['filename']))
  }
}

const googleMark = 'google:'

function readThought(facts: AskFacts, { type, thinking, signature, data }: Fields): void {
  if (type === 'redacted_thinking') facts.hidden.push(textIn(data))
  if (type !== 'thinking' || textIn(signature) === '' || textIn(signature).startsWith(googleMark)) return
  facts.thoughts.push({ text: textIn(thinking), signature: textIn(signature) })
}

function toolOf({ name, description }: Fields, schema: Value | undefined): Tool {
  return { name: textIn(name), description: textIn(description), takes: placesIn(schema), isWaiting: false }
}

/** The paths of all properties in a schema, with references followed: `twins[].name`. */
export function placesIn(schema: Value | undefined): string[] {
  const root = fieldsIn(schema)
  const walk = (value: Value | undefined, path: string, depth: number): string[] => {
    const { $ref: ref, properties, items } = fieldsIn(value)
    if (typeof ref === 'string' && depth < 8) {
      const target = ref
        .split('/')
        .slice(1)
        .reduce<Value | undefined>((found, step) => fieldsIn(found)[step], root)
      return walk(target, path, depth + 1)
    }
    const named = Object.entries(fieldsIn(properties)).flatMap(([name, inner]) => {
      const at = path === '' ? name : `${path}.${name}`
      return [at, ...walk(inner, at, depth + 1)]
    })
    return [...named, ...(items === undefined ? [] : walk(items, `${path}[]`, depth + 1))]
  }
  return walk(root, '', 0).toSorted()
}

function readMessages(body: Fields): AskFacts {
  const facts = noFacts()
  facts.instructions.push(...textsOf(body['system']).filter((text) => !text.startsWith('x-anthropic-billing-header')))
  for (const { role, content } of objectsIn(body['messages'])) {
    if (role === 'system') facts.instructions.push(...textsOf(content))
    else if (typeof content === 'string') facts.said.push(...textsOf(content).map((text) => ({ by: byOf(role), text })))
    else readBlocks(facts, byOf(role), objectsIn(content))
  }
  facts.tools = objectsIn(body['tools']).map((tool) => {
    const isWaiting = tool['defer_loading'] === true && !facts.labels.includes(textIn(tool['name']))
    return { ...toolOf(tool, tool['input_schema']), isWaiting }
  })
  const { type, name, disable_parallel_tool_use: isAlone } = fieldsIn(body['tool_choice'])
  facts.choice = type === 'any' ? 'required' : type === 'tool' ? `only ${textIn(name)}` : textIn(type) || 'auto'
  facts.isAlone = isAlone === true
  facts.stop = itemsIn(body['stop_sequences']).map(textIn)
  facts.cap = Number(body['max_tokens'])
  facts.schema = placesIn(fieldsIn(fieldsIn(body['output_config'])['format'])['schema'])
  return facts
}

function byOf(role: Value | undefined): 'user' | 'assistant' {
  return role === 'assistant' ? 'assistant' : 'user'
}

function readBlocks(facts: AskFacts, by: 'user' | 'assistant', blocks: readonly Fields[]): void {
  for (const [at, block] of blocks.entries()) {
    switch (textIn(block['type'])) {
      case 'text':
        if (textIn(block['text']).trim() !== '') facts.said.push({ by, text: textIn(block['text']) })
        break
      case 'tool_use':
        facts.calls.push(messagesCall(block, blocks[at - 1]))
        break
      case 'tool_result': {
        const { content, is_error: isError } = block
        const call = lastCall(facts, textIn(block['tool_use_id']), 'id')
        facts.results.push({ call, text: normal(textsOf(content).join('\n')), isError: isError === true })
        for (const part of objectsIn(content)) readShown(facts, part)
        break
      }
      default:
        readThought(facts, block)
        readShown(facts, block)
    }
  }
}

/** The signature of a call by Google is in an empty thinking block before the call, or in the call itself. */
export function messagesCall({ id, name, input, extra_content: extra }: Fields, before: Fields | undefined): Call {
  const carried = textIn(before?.['signature'])
  const own = fieldsIn(fieldsIn(extra)['google'])['thought_signature']
  const signature = own === undefined ? carried : `${googleMark}${textIn(own)}`
  return {
    id: textIn(id),
    name: textIn(name),
    input: canonical(input),
    signature: signature.startsWith(googleMark) ? signature.slice(googleMark.length) : undefined,
  }
}

function readShown(facts: AskFacts, block: Fields): void {
  const { type, source, title, context, content, tool_name: tool } = block
  const { url, media_type: mediaType, data, content: inside } = fieldsIn(source)
  facts.labels.push(...[title, context, tool].map(textIn).filter((label) => label !== ''))
  if (type === 'image') facts.images.push(textIn(url) || media(textIn(mediaType), textIn(data)))
  if (type === 'search_result') {
    facts.labels.push(textIn(source))
    facts.documents.push(...textsOf(content))
  }
  if (type !== 'document') return
  const isText = fieldsIn(source)['type'] === 'text'
  if (inside !== undefined) facts.documents.push(...textsOf(inside))
  else facts.documents.push(textIn(url) || (isText ? textIn(data) : media(textIn(mediaType), textIn(data))))
}

function readGemini(body: Fields): AskFacts {
  const facts = noFacts()
  facts.instructions.push(...textsOf(fieldsIn(body['systemInstruction'])['parts']))
  for (const { role, parts } of objectsIn(body['contents'])) {
    for (const part of objectsIn(parts)) readPart(facts, role === 'model' ? 'assistant' : 'user', part)
  }
  const declared = objectsIn(body['tools']).flatMap((tool) => objectsIn(tool['functionDeclarations']))
  facts.tools = declared.map((tool) => toolOf(tool, tool['parametersJsonSchema'] ?? tool['parameters']))
  const { mode, allowedFunctionNames: only } = fieldsIn(fieldsIn(body['toolConfig'])['functionCallingConfig'])
  const modes: Readonly<Record<string, string>> = { ANY: 'required', NONE: 'none' }
  facts.choice = itemsIn(only).length === 1 ? `only ${textIn(itemsIn(only)[0])}` : (modes[textIn(mode)] ?? 'auto')
  const { stopSequences, maxOutputTokens, responseJsonSchema } = fieldsIn(body['generationConfig'])
  facts.stop = itemsIn(stopSequences).map(textIn)
  facts.cap = typeof maxOutputTokens === 'number' ? maxOutputTokens : undefined
  facts.schema = placesIn(responseJsonSchema)
  return facts
}

function readPart(facts: AskFacts, by: 'user' | 'assistant', part: Fields): void {
  const { text, functionCall: call, functionResponse: answer, inlineData, fileData, thought } = part
  if (typeof text === 'string' && thought !== true) facts.said.push({ by, text })
  if (isFields(call)) facts.calls.push(geminiCall(call, part['thoughtSignature']))
  if (isFields(fileData)) facts.images.push(textIn(fileData['fileUri']))
  if (isFields(inlineData)) {
    const type = textIn(inlineData['mimeType'])
    const list = type.startsWith('image/') ? facts.images : facts.documents
    list.push(media(type, textIn(inlineData['data'])))
  }
  if (!isFields(answer)) return
  const { id, response, parts } = answer
  const { result, error } = fieldsIn(response)
  const told = result ?? error
  facts.results.push({
    call: lastCall(facts, textIn(id), 'id'),
    text: typeof told === 'string' ? normal(told) : canonical(response),
    isError: error !== undefined,
  })
  for (const inside of objectsIn(parts)) readPart(facts, 'user', inside)
}

export function geminiCall({ id, name, args }: Fields, signature: Value | undefined): Call {
  return {
    id: textIn(id),
    name: textIn(name),
    input: canonical(args ?? {}),
    signature: typeof signature === 'string' ? signature : undefined,
  }
}
