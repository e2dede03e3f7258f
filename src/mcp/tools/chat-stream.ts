import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { dataOf, EventSplitter } from '../../base/sse.ts'
import { itemsIn, objectIn, textIn } from '../../wire/loose.ts'
import { argumentsTextIn } from '../../wire/openai/read-answer.ts'
import { findCall } from '../../wire/openai/call-reader.ts'
import { readPieces } from '../read-pieces.ts'
import { wordsIn, type Worded } from './chat-words.ts'

/** A chat's answer, assembled from its chunks. */
export type ChatReply = {
  readonly id?: string | undefined
  readonly model: string
  readonly replies: readonly Reply[]
  readonly usage?: object | undefined
}

export type Reply = {
  readonly index: number
  readonly text: string
  readonly finish: string | null
  /** Everything else that came, by the names under which it is shown. Much of it may be empty. */
  readonly more: Readonly<Record<string, unknown>>
}

type Growing = {
  text: string
  finish: string | null
  refusal: string
  reasoning: string
  readonly annotations: object[]
  readonly images: object[]
  readonly calls: GrowingCall[]
  /** A call in the form that tools replaced. */
  function_call?: { readonly name: string; readonly arguments: string }
}

type GrowingCall = {
  /** The vendor's; some give all calls the same. */
  readonly index: number
  id: string
  type: string
  name: string
  /** The arguments of a function, or the input of a custom tool. */
  text: string
  /** With the signature of the call, which Google's models want back. */
  extra?: JsonObject
}

type Chunk = {
  readonly id?: string
  readonly model?: string
  readonly usage?: object | null
  readonly error?: unknown
  readonly choices?: readonly {
    readonly index?: number
    readonly delta?: Delta | null
    readonly finish_reason?: string | null
  }[]
}

type Delta = Worded & {
  readonly refusal?: string | null
  readonly annotations?: readonly object[] | null
  readonly images?: readonly object[] | null
  readonly tool_calls?: Json
  readonly function_call?: Json
}

// The flow has already bounded the size of every event.
const eventBytesMax = 64 * 1024 * 1024

/** Reads a stream of chunks to its end. `error` is the body of the error event, if the stream failed. */
export async function readChatStream(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal,
  onText: (text: string) => void,
): Promise<{ reply: ChatReply; error?: string }> {
  const splitter = new EventSplitter(eventBytesMax)
  const growing = new Map<number, Growing>()
  let id: string | undefined
  let model = ''
  let usage: object | undefined
  let error: string | undefined

  const take = (chunk: Chunk, text: string) => {
    if (chunk.error !== undefined) error = text
    id ??= chunk.id
    model = chunk.model ?? model
    usage = chunk.usage ?? usage
    for (const { index = 0, delta, finish_reason: finish } of chunk.choices ?? []) {
      const choice = growing.get(index) ?? nothingYet()
      growing.set(index, choice)
      const { text: said } = grow(choice, delta ?? {})
      choice.finish = finish ?? choice.finish
      if (said !== '') onText(said)
    }
  }

  await readPieces(body, signal, (piece) => {
    for (const event of splitter.push(piece)) {
      const text = dataOf(event)
      const chunk = readChunk(text)
      if (chunk !== undefined) take(chunk, text)
    }
  })
  const replies = [...growing].map(([index, { text, finish, calls, ...more }]) => {
    return { index, text, finish, more: { tool_calls: calls.map(showCall), ...more } }
  })
  const reply = { id, model, replies: replies.toSorted((a, b) => a.index - b.index), usage }
  return error === undefined ? { reply } : { reply, error }
}

function nothingYet(): Growing {
  return { text: '', finish: null, refusal: '', reasoning: '', annotations: [], images: [], calls: [] }
}

/** Gives the words of the delta. */
function grow(choice: Growing, delta: Delta): ReturnType<typeof wordsIn> {
  const words = wordsIn(delta)
  choice.text += words.text
  choice.reasoning += words.reasoning
  choice.refusal += delta.refusal ?? ''
  choice.annotations.push(...(delta.annotations ?? []))
  choice.images.push(...(delta.images ?? []))
  if (isObject(delta.function_call)) {
    const { name, arguments: text } = choice.function_call ?? { name: '', arguments: '' }
    const more = calledIn(delta.function_call)
    choice.function_call = { name: name + more.name, arguments: text + more.text }
  }
  for (const [position, part] of itemsIn(delta.tool_calls).entries()) {
    if (isObject(part)) growCall(choice.calls, part, position)
  }
  return words
}

function growCall(calls: GrowingCall[], part: JsonObject, position: number): void {
  const { custom, extra_content: extra } = part
  const index = typeof part['index'] === 'number' ? part['index'] : position
  const id = textIn(part['id'])
  const { name, text } = calledIn(objectIn(custom ?? part['function']))
  const known = calls[findCall(calls, { index, id, name, text })]
  const call = known ?? { index, id, type: 'function', name: '', text: '' }
  if (known === undefined) calls.push(call)
  call.id ||= id
  call.type = textIn(part['type']) || (isObject(custom) ? 'custom' : call.type)
  call.name += name
  call.text += text
  if (isObject(extra)) call.extra = extra
}

function calledIn(called: JsonObject): { readonly name: string; readonly text: string } {
  return { name: textIn(called['name']), text: argumentsTextIn(called['arguments'] ?? called['input']) }
}

function showCall({ id, type, name, text, extra }: GrowingCall): object {
  return {
    id,
    type,
    ...(type === 'custom' ? { custom: { name, input: text } } : { function: { name, arguments: text } }),
    ...(extra !== undefined && { extra_content: extra }),
  }
}

/** Undefined for an event that is not a JSON object, such as `[DONE]`. */
function readChunk(text: string): Chunk | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? value : undefined
  } catch {
    return undefined
  }
}
