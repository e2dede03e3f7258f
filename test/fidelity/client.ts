import { payloads } from '../support/streams.ts'
import type { Protocol } from './corpus.ts'
import {
  canonical,
  fieldsIn,
  isFields,
  itemsIn,
  objectsIn,
  parse,
  replace,
  textIn,
  type Fields,
  type Value,
} from './exact-json.ts'
import { joinResponse } from './responses-client.ts'

/** What a client got: the answer as it would keep it, and the events if it was streamed. */
export type Answer = { readonly status: number; readonly body: Fields; readonly events: readonly Fields[] }

const paths = {
  chat: '/v1/chat/completions',
  messages: '/v1/messages',
  responses: '/v1/responses',
} as const satisfies Record<Protocol, string>

type Post = (path: string, body: unknown, headers?: Record<string, string>) => Promise<Response>

export async function ask(
  post: Post,
  protocol: Protocol,
  body: Fields,
  headers: Readonly<Record<string, string>>,
): Promise<Answer> {
  const version: Record<string, string> = protocol === 'messages' ? { 'anthropic-version': '2023-06-01' } : {}
  const response = await post(paths[protocol], JSON.stringify(body), { ...version, ...headers })
  const text = await response.text()
  const { status } = response
  if (!response.headers.get('content-type')?.startsWith('text/event-stream')) {
    return { status, body: fieldsIn(parse(text)), events: [] }
  }
  if (protocol === 'responses') return joinResponse(readEvents(text), status)
  return protocol === 'chat' ? joinChunks(text, status) : joinEvents(text, status)
}

/** The chunks of the common protocol put together as its SDKs do. */
function joinChunks(text: string, status: number): Answer {
  const written = payloads(text).filter((payload) => payload !== '')
  if (written.at(-1) !== '[DONE]') throw new Error(`the stream has no end: ${text.slice(-200)}`)
  const events = written.slice(0, -1).map((payload) => fieldsIn(parse(payload)))
  const message: Record<string, Value> = { role: 'assistant', content: null }
  const calls: Record<string, Value>[] = []
  let finish: Value = null
  let usage: Value | undefined
  for (const event of events) {
    if (event['usage'] !== undefined && event['usage'] !== null) ({ usage } = event)
    for (const choice of objectsIn(event['choices'])) {
      const { tool_calls: pieces, ...delta } = fieldsIn(choice['delta'])
      for (const [name, piece] of Object.entries(delta)) message[name] = joined(message[name], piece)
      for (const piece of objectsIn(pieces)) joinCall(calls, piece)
      if (typeof choice['finish_reason'] === 'string') finish = choice['finish_reason']
    }
  }
  if (calls.length > 0) message['tool_calls'] = calls
  checkChunks(events)
  const { id, created, model } = fieldsIn(events[0])
  const body = {
    id,
    object: 'chat.completion',
    created,
    model,
    choices: [{ index: 0, message, finish_reason: finish }],
  }
  return { status, body: { ...body, ...(usage !== undefined && { usage }) }, events }
}

/** All chunks share id, model and time; usage is null in all but the last, which has no choices. */
function checkChunks(events: readonly Fields[]): void {
  const heads = new Set(events.map(({ id, object, created, model }) => canonical({ id, object, created, model })))
  if (heads.size !== 1) throw new Error(`chunks of several answers: ${[...heads].join(' ')}`)
  const counted = events.findIndex(({ usage }) => usage !== null)
  if (counted !== events.length - 1 || objectsIn(events[counted]?.['choices']).length > 0) {
    throw new Error('the usage does not stand in a chunk of its own at the end')
  }
  const [first] = objectsIn(events[0]?.['choices'])
  if (fieldsIn(first?.['delta'])['role'] !== 'assistant') throw new Error('the first chunk does not say who speaks')
}

function joined(known: Value | undefined, piece: Value | undefined): Value {
  if (typeof piece === 'string') return piece === 'assistant' ? piece : textIn(known) + piece
  if (Array.isArray(piece)) return [...itemsIn(known), ...itemsIn(piece)]
  // The retired `function_call`.
  if (isFields(piece)) {
    const parts = Object.entries(piece).map(([name, more]) => [name, joined(fieldsIn(known)[name], more)])
    return { ...fieldsIn(known), ...(Object.fromEntries(parts) as Fields) }
  }
  return known ?? piece ?? null
}

function joinCall(calls: Record<string, Value>[], piece: Fields): void {
  const { index, function: named, ...rest } = piece
  const at = Number(index)
  const known = calls[at] ?? {}
  const { name, arguments: text } = fieldsIn(known['function'])
  const more = fieldsIn(named)
  const called = { name: textIn(name) + textIn(more['name']), arguments: textIn(text) + textIn(more['arguments']) }
  calls[at] = { ...known, ...(rest as Record<string, Value>), function: called }
}

/** The events of the messages protocol, which official clients throw on where their order is wrong. */
function joinEvents(text: string, status: number): Answer {
  const events = readEvents(text)
  const [start, ...others] = events
  if (start?.['type'] !== 'message_start') throw new Error(`the stream begins with ${textIn(start?.['type'])}`)
  if (events.at(-1)?.['type'] !== 'message_stop') throw new Error('the stream has no end')
  const message: Record<string, Value | undefined> = { ...fieldsIn(start['message']) }
  const blocks: Fields[] = []
  let open: { block: Record<string, Value | undefined>; json: string } | undefined
  for (const event of others) {
    const isPlaced = event['index'] === blocks.length
    switch (textIn(event['type'])) {
      case 'content_block_start':
        if (open !== undefined || !isPlaced) throw new Error('blocks overlap, or are counted wrong')
        open = { block: { ...fieldsIn(event['content_block']) }, json: '' }
        break
      case 'content_block_delta':
        if (open === undefined || !isPlaced) throw new Error('a delta of no open block')
        open.json += joinDelta(open.block, fieldsIn(event['delta']))
        break
      case 'content_block_stop':
        if (open === undefined || !isPlaced) throw new Error('no block to stop')
        blocks.push(open.json === '' ? open.block : { ...open.block, input: parse(open.json) })
        open = undefined
        break
      case 'message_delta':
        Object.assign(message, fieldsIn(event['delta']))
        message['usage'] = { ...fieldsIn(message['usage']), ...fieldsIn(event['usage']) }
        break
      default: // a ping, or the end
    }
  }
  return { status, body: { ...message, content: blocks }, events }
}

/** An event without its name is not seen by the vendor's own SDK. */
function readEvents(text: string): Fields[] {
  return text
    .replaceAll(/^:.*\n/gm, '') // comments
    .split('\n\n')
    .filter((event) => event.trim() !== '')
    .map((event) => {
      const [, name, data] = /^event: ([\w.]+)\ndata: (.*)$/s.exec(event.trim()) ?? []
      const fields = fieldsIn(parse(data ?? 'null'))
      if (name === undefined || fields['type'] !== name) throw new Error(`an event without its name: ${event}`)
      return fields
    })
}

function joinDelta(block: Record<string, Value | undefined>, delta: Fields): string {
  switch (textIn(delta['type'])) {
    case 'text_delta':
      block['text'] = textIn(block['text']) + textIn(delta['text'])
      return ''
    case 'thinking_delta':
      block['thinking'] = textIn(block['thinking']) + textIn(delta['thinking'])
      return ''
    case 'signature_delta':
      block['signature'] = textIn(block['signature']) + textIn(delta['signature'])
      return ''
    case 'citations_delta':
      block['citations'] = [...itemsIn(block['citations']), fieldsIn(delta['citation'])]
      return ''
    case 'input_json_delta':
      return textIn(delta['partial_json'])
    default:
      throw new Error(`a delta that nobody knows: ${textIn(delta['type'])}`)
  }
}

/** The client's next request: its history, the answer as it came, and what it says now. */
export function goOn(protocol: Protocol, history: readonly Value[], answer: Answer, next: readonly Fields[]): Value[] {
  const { messages, ids } = keptOf(protocol, answer.body)
  const said = replace(next, (value) => {
    const at = typeof value === 'string' ? /^\$call:(\d+)$/.exec(value)?.[1] : undefined
    return at === undefined ? value : (ids[Number(at)] ?? `no call ${at}`)
  })
  return [...history, ...messages, ...itemsIn(said)]
}

/** What a client keeps of an answer, and the ids of the calls in it. */
function keptOf(protocol: Protocol, body: Fields): { readonly messages: readonly Fields[]; readonly ids: string[] } {
  switch (protocol) {
    case 'chat': {
      const message = fieldsIn(objectsIn(body['choices'])[0]?.['message'])
      return { messages: [message], ids: objectsIn(message['tool_calls']).map(({ id }) => textIn(id)) }
    }
    case 'messages': {
      const content = objectsIn(body['content'])
      const ids = content.flatMap(({ type, id }) => (type === 'tool_use' ? [textIn(id)] : []))
      return { messages: [{ role: 'assistant', content: body['content'] ?? [] }], ids }
    }
    case 'responses': {
      const output = objectsIn(body['output'])
      return { messages: output, ids: output.flatMap(({ call_id: id }) => (id === undefined ? [] : [textIn(id)])) }
    }
  }
}
