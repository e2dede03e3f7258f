import fc from 'fast-check'
import {
  markGoogle,
  type AssistantBlock,
  type Choice,
  type Conversation,
  type Finish,
  type Placed,
  type Reply,
  type ReplyEvent,
  type Tool,
  type ToolCallBlock,
  type Turn,
  type UserBlock,
} from '../../src/capabilities/conversation.ts'

/** Conversations and replies in canonical form: what every protocol that can express them must preserve. */

const said = fc.string({ minLength: 1, maxLength: 20, unit: 'grapheme' }).filter((text) => text.trim() === text)
const word = fc.stringMatching(/^[a-z][a-z0-9_]{0,8}$/)
const signature = fc.stringMatching(/^Eq[A-Za-z0-9]{4,12}$/)
const value = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null))
const cache = fc.constantFrom('5m', '1h')

/** A text with a key `__proto__` is not read as an object. */
const argumentName = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/).filter((name) => name !== '__proto__')
/** A call's arguments. */
export const argumentsTexts = fc.dictionary(argumentName, value, { maxKeys: 3 }).map((given) => JSON.stringify(given))

const text = said.map((text) => ({ kind: 'text' as const, text }))
const media = fc.oneof(
  fc.constant({ kind: 'bytes' as const, mediaType: 'image/png', base64: 'iVBORw0KGgo=' }),
  fc.constant({ kind: 'url' as const, url: 'https://pictures.example/a.png' }),
)
const image = media.map((media) => ({ kind: 'image' as const, media }))
const document = fc.record(
  {
    media: said.map((text) => ({ kind: 'text' as const, text })),
    title: said,
    context: said,
    isCited: fc.constant(true),
  },
  { requiredKeys: ['media'] },
)
const shown = fc.oneof(
  text,
  image,
  document.map((fields) => ({ kind: 'document' as const, ...fields })),
)

type Spoken = { readonly user: readonly UserBlock[]; readonly assistant: readonly AssistantBlock[] }

const thought: fc.Arbitrary<AssistantBlock> = fc.oneof(
  fc.record({ kind: fc.constant('thinking' as const), text: fc.oneof(said, fc.constant('')), signature }),
  fc.record({ kind: fc.constant('thinking-redacted' as const), data: signature }),
)

const spoken: fc.Arbitrary<Spoken> = fc.record({
  user: fc.array(shown, { minLength: 1, maxLength: 3 }),
  assistant: fc.tuple(fc.array(thought, { maxLength: 2 }), text).map(([thoughts, words]) => [...thoughts, words]),
})

const call = fc.record({
  name: word,
  argumentsText: argumentsTexts,
  result: fc.array(shown, { maxLength: 2 }),
  isError: fc.boolean(),
})

const tool: fc.Arbitrary<Tool> = fc.record(
  {
    name: word,
    description: said,
    schema: fc.constant({ type: 'object', properties: { a: { type: 'string' } }, additionalProperties: false }),
    isStrict: fc.constant(true),
  },
  { requiredKeys: ['name', 'schema'] },
)

type Exchange = { readonly spoken: Spoken; readonly calls: readonly Call[]; readonly aside: string | undefined }
type Call = {
  name: string
  argumentsText: string
  result: readonly (typeof shown extends fc.Arbitrary<infer T> ? T : never)[]
  isError: boolean
}

/** Ids as other vendors make them, some with characters that the strictest vendor refuses. */
const idOf = (turn: number, index: number) => (index === 0 ? `call_${turn}` : `functions.f:${turn}-${index}`)

function turnsOf(exchanges: readonly Exchange[], last: readonly UserBlock[], hasAsides: boolean): Turn[] {
  const turns: Turn[] = []
  let results: UserBlock[] = []
  for (const [at, { spoken, calls, aside }] of exchanges.entries()) {
    turns.push({ role: 'user', blocks: [...results, ...spoken.user] })
    if (hasAsides && aside !== undefined) turns.push({ role: 'system', blocks: [{ kind: 'text', text: aside }] })
    const made = calls.map(({ name, argumentsText }, index): ToolCallBlock => {
      return { kind: 'tool-call', id: idOf(at, index), name, argumentsText }
    })
    turns.push({ role: 'assistant', blocks: [...spoken.assistant, ...made] })
    results = calls.map(({ result, isError }, index) => ({
      kind: 'tool-result',
      callId: idOf(at, index),
      blocks: result,
      isError,
    }))
  }
  turns.push({ role: 'user', blocks: [...results, ...last] })
  return turns
}

const exchange: fc.Arbitrary<Exchange> = fc.record({
  spoken,
  calls: fc.array(call, { maxLength: 2 }),
  aside: fc.option(said, { nil: undefined }),
})

const settings = fc.record(
  {
    outputTokensMax: fc.integer({ min: 1, max: 8_000 }),
    stop: fc.array(said, { maxLength: 3 }),
    format: fc.constant({
      kind: 'schema' as const,
      schema: { type: 'object', properties: { b: { type: 'integer' } }, additionalProperties: false },
    }),
    user: said,
  },
  { requiredKeys: ['stop', 'outputTokensMax'] },
)

/** `hasAsides` adds system instructions in the middle, which not every model takes. */
export function conversations(hasAsides: boolean): fc.Arbitrary<Conversation> {
  return fc
    .record({
      system: fc.array(text, { maxLength: 2 }),
      exchanges: fc.array(exchange, { maxLength: 3 }),
      last: fc.array(shown, { minLength: 1, maxLength: 2 }),
      tools: fc.uniqueArray(tool, { minLength: 1, maxLength: 3, selector: ({ name }) => name }),
      choice: fc.constantFrom(undefined, 'auto', 'none', 'required', 'named'),
      isAlone: fc.boolean(),
      hint: fc.option(cache, { nil: undefined }),
      searches: fc.option(fc.integer({ min: 1, max: 9 }), { nil: undefined }),
      settings,
    })
    .map(({ exchanges, last, choice, hint, searches, isAlone, settings, ...rest }): Conversation => {
      const [first] = rest.tools
      const toolChoice = choice === 'named' ? { name: first?.name ?? '' } : choice
      const mark = hint === undefined ? {} : { cache: hint }
      return {
        ...settings,
        system: rest.system.map((block, index) => (index === 0 ? { ...block, ...mark } : block)),
        tools: rest.tools.map((tool, index) => (index === 0 ? { ...tool, ...mark } : tool)),
        turns: turnsOf(exchanges, last, hasAsides),
        hostedTools: searches === undefined ? [] : [{ kind: 'web-search', usesMax: searches }],
        ...(toolChoice !== undefined && { toolChoice }),
        ...(isAlone && choice !== 'none' && { parallelTools: false, toolChoice: toolChoice ?? 'auto' }),
      }
    })
}

const citation = fc.oneof(
  fc.record({ url: fc.constant('https://pages.example/a'), title: said, citedText: said }, { requiredKeys: ['url'] }),
  fc.record({ title: said, citedText: said }),
)

const replyBlock: fc.Arbitrary<AssistantBlock> = fc.oneof(
  fc.record({
    kind: fc.constant('text' as const),
    text: said,
    citations: fc.array(citation, { minLength: 1, maxLength: 2 }),
  }),
  text,
  thought,
)

const finishes: readonly Finish[] = ['stop', 'stop-sequence', 'length', 'refusal', 'pause']
const count = fc.integer({ min: 0, max: 100_000 })

/** No two texts are adjacent, because a stream would merge them into one. */
export const replies: fc.Arbitrary<Reply> = fc
  .record({
    blocks: fc.array(replyBlock, { maxLength: 4 }),
    calls: fc.array(fc.record({ name: word, argumentsText: argumentsTexts, signed: fc.boolean() }), { maxLength: 3 }),
    finish: fc.constantFrom(...finishes),
    sequence: said,
    usage: fc.record({
      input: count,
      cachedInput: count,
      cacheWrite: count,
      cacheWriteHour: count,
      output: count,
      reasoning: count,
      webSearch: count,
    }),
  })
  .map(({ blocks, calls, finish, sequence, usage }): Reply => {
    const apart = blocks.filter(({ kind }, index) => kind !== 'text' || blocks[index - 1]?.kind !== 'text')
    const made = calls.map(({ name, argumentsText, signed }, index): ToolCallBlock => ({
      kind: 'tool-call',
      id: idOf(0, index),
      name,
      argumentsText,
      ...(signed && { signature: markGoogle(`sig${index}`) }),
    }))
    const choice: Choice = {
      blocks: [...apart, ...made],
      finish: calls.length > 0 ? 'tool-calls' : finish,
      ...(calls.length === 0 && finish === 'stop-sequence' && { stopSequence: sequence }),
    }
    return { choices: [choice], usage }
  })

/** The reply as a stream of events with its calls interleaved: `turn` picks the call that grows next. */
export function eventsOf(reply: Reply, turn: (pending: number) => number): ReplyEvent[] {
  const choice = 0
  const [{ blocks, finish, stopSequence }] = reply.choices as [Choice]
  const events: ReplyEvent[] = [{ kind: 'reply-start' }]
  const growing: { call: number; text: string }[] = []
  for (const block of blocks) {
    if (block.kind === 'text') {
      for (const part of halves(block.text)) events.push({ kind: 'text-delta', choice, text: part })
      for (const citation of block.citations ?? []) events.push({ kind: 'citation-add', choice, citation })
    } else if (block.kind === 'thinking') {
      for (const part of halves(block.text)) events.push({ kind: 'thinking-delta', choice, text: part })
      events.push({ kind: 'thinking-sign', choice, text: block.text, signature: block.signature ?? '' })
    } else if (block.kind === 'thinking-redacted') {
      events.push({ kind: 'thinking-redact', choice, data: block.data })
    } else if (block.kind === 'tool-call') {
      const call = blocks.filter(({ kind }) => kind === 'tool-call').indexOf(block)
      const { id, name, signature } = block
      events.push({ kind: 'tool-call-start', choice, call, id, name, ...(signature !== undefined && { signature }) })
      growing.push(...halves(block.argumentsText).map((text) => ({ call, text })))
    }
  }
  while (growing.length > 0) {
    // The pieces of one call keep their order, whichever call is picked.
    const { call } = growing[turn(growing.length)] ?? { call: -1 }
    const [next] = growing.splice(
      growing.findIndex((piece) => piece.call === call),
      1,
    )
    if (next !== undefined) events.push({ kind: 'tool-call-delta', choice, ...next })
  }
  events.push({ kind: 'choice-finish', choice, finish, ...(stopSequence !== undefined && { stopSequence }) })
  if (reply.usage !== undefined) events.push({ kind: 'usage-count', usage: reply.usage })
  return [...events, { kind: 'reply-end' }]
}

function halves(text: string): string[] {
  const characters = Array.from(text)
  const middle = Math.ceil(characters.length / 2)
  return [characters.slice(0, middle).join(''), characters.slice(middle).join('')].filter((part) => part !== '')
}

/** The reply that a stream adds up to. */
export function replyOf(events: readonly ReplyEvent[]): Reply {
  const blocks: AssistantBlock[] = []
  let thought = ''
  let choice: Choice = { blocks, finish: 'stop' }
  let usage: Reply['usage']
  const grow = (text: string) => {
    const last = blocks.at(-1)
    if (last?.kind === 'text') blocks[blocks.length - 1] = { ...last, text: last.text + text }
    else blocks.push({ kind: 'text', text })
  }
  for (const event of events) {
    if (event.kind === 'text-delta') grow(event.text)
    else if (event.kind === 'citation-add') {
      const last = blocks.at(-1)
      if (last?.kind !== 'text') throw new Error('a citation without a text')
      blocks[blocks.length - 1] = { ...last, citations: [...(last.citations ?? []), event.citation] }
    } else if (event.kind === 'thinking-delta') thought += event.text
    else if (event.kind === 'thinking-sign') {
      blocks.push({ kind: 'thinking', text: thought, signature: event.signature })
      thought = ''
    } else if (event.kind === 'thinking-redact') blocks.push({ kind: 'thinking-redacted', data: event.data })
    else if (event.kind === 'tool-call-start') {
      const { id, name, signature } = event
      blocks.push({ kind: 'tool-call', id, name, argumentsText: '', ...(signature !== undefined && { signature }) })
    } else if (event.kind === 'tool-call-delta') {
      const calls = blocks.filter((block) => block.kind === 'tool-call')
      const made = calls[event.call]
      if (made === undefined) throw new Error('a call that never began')
      blocks[blocks.indexOf(made)] = { ...made, argumentsText: made.argumentsText + event.text }
    } else if (event.kind === 'choice-finish') {
      const { finish, stopSequence } = event
      choice = { blocks, finish, ...(stopSequence !== undefined && { stopSequence }) }
    } else if (event.kind === 'usage-count') usage = event.usage
  }
  return { choices: [choice], usage }
}

/** Cuts bytes at arbitrary places. */
export function cut(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const ends = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) => a - b)
  const starts = [0, ...ends]
  return starts.map((start, index) => bytes.subarray(start, ends[index] ?? bytes.length))
}

/** Turns without the positions at which a client wrote their blocks, which do not change their meaning. */
export function unplaced(turns: readonly Turn[]): readonly Turn[] {
  return turns.map((turn) => (turn.role === 'user' ? { ...turn, blocks: turn.blocks.map(withoutPlace) } : turn))
}

function withoutPlace<Block extends UserBlock>(block: Block): Block {
  const { at: _, ...rest }: UserBlock & Placed = block
  const inside = block.kind === 'tool-result' ? { blocks: block.blocks.map(withoutPlace) } : {}
  // Only the optional position was removed.
  return { ...rest, ...inside } as Block
}
