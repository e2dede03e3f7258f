import { dataOf, EventSplitter } from '../../base/sse.ts'
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
  readonly calls: { readonly index: number; readonly call: GrowingCall }[]
  /** A call in the form that tools replaced. */
  function_call?: Called
}

type Called = { readonly name: string; readonly arguments: string }

/** Has a function or a custom tool, by its type. */
type GrowingCall = {
  id: string
  type: string
  function?: Called
  custom?: { readonly name: string; readonly input: string }
  /** With the signature of the call, which Google's models want back. */
  extra_content?: object
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
  readonly tool_calls?: readonly CallDelta[] | null
  readonly function_call?: CalledDelta | null
}

type CallDelta = {
  readonly index?: number
  readonly id?: string | null
  readonly type?: string | null
  readonly function?: CalledDelta | null
  readonly custom?: { readonly name?: string | null; readonly input?: string | null } | null
  readonly extra_content?: object | null
}

type CalledDelta = { readonly name?: string | null; readonly arguments?: string | null }

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
    return { index, text, finish, more: { tool_calls: calls.map(({ call }) => call), ...more } }
  })
  const reply = { id, model, replies: replies.toSorted((a, b) => a.index - b.index), usage }
  return error === undefined ? { reply } : { reply, error }
}

/** A stream whose client has left yields nothing more, not even its end, so its reader has to leave too. */
async function readPieces(body: ReadableStream<Uint8Array>, signal: AbortSignal, take: (piece: Uint8Array) => void) {
  const reader = body.getReader()
  const leave = () => {
    reader.cancel().catch(() => {})
  }
  if (signal.aborted) leave()
  signal.addEventListener('abort', leave, { once: true })
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) take(read.value)
  } finally {
    signal.removeEventListener('abort', leave)
  }
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
  if (delta.function_call) choice.function_call = grown(choice.function_call, delta.function_call)
  for (const [position, { index = position, ...part }] of (delta.tool_calls ?? []).entries()) {
    growCall(callOf(choice, index, part), part)
  }
  return words
}

/**
 * The call that a part belongs to, begun if it is the first. Some vendors give all parallel calls the same index and
 * only different ids; a part without a name continues a call, whatever its id.
 */
function callOf({ calls }: Growing, index: number, { id, function: called, custom }: CallDelta): GrowingCall {
  const isNamed = Boolean(called?.name ?? custom?.name)
  const known = calls.findLast((one) => one.index === index && (!id || one.call.id === '' || one.call.id === id))
  const found = known ?? (isNamed ? undefined : calls.findLast((one) => one.index === index))
  if (found !== undefined) return found.call
  const call = { id: '', type: 'function' }
  calls.push({ index, call })
  return call
}

function growCall(call: GrowingCall, { id, type, function: called, custom, extra_content: extra }: CallDelta): void {
  call.id ||= id ?? ''
  call.type = type ?? call.type
  if (extra) call.extra_content = extra
  if (called) call.function = grown(call.function, called)
  if (custom) {
    const { name, input } = call.custom ?? { name: '', input: '' }
    call.custom = { name: name + (custom.name ?? ''), input: input + (custom.input ?? '') }
  }
}

function grown(called: Called | undefined, more: CalledDelta): Called {
  const { name, arguments: written } = called ?? { name: '', arguments: '' }
  return { name: name + (more.name ?? ''), arguments: written + (more.arguments ?? '') }
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
