import { expect, test } from 'bun:test'
import type { Json } from '../../base/json.ts'
import type { AssistantBlock, Choice, ReplyEvent } from '../../capabilities/conversation.ts'
import { openaiChat } from './chat.ts'
import { name, plainAsk, streamAsk } from './testing.ts'

const text = (said: string): AssistantBlock => ({ kind: 'text', text: said })
const call: AssistantBlock = { kind: 'tool-call', id: 'c', name: 'f', argumentsText: '{}' }
const media = { kind: 'bytes', mediaType: 'image/png', base64: 'AAAA' } as const
const page = { url: 'https://pages.example/a' }

function eventsOf(blocks: readonly AssistantBlock[], choice: number): ReplyEvent[] {
  return blocks.flatMap((block, at): ReplyEvent[] => {
    switch (block.kind) {
      case 'text': {
        const pieces = Array.from(block.text, (piece): ReplyEvent => ({ kind: 'text-delta', choice, text: piece }))
        const cited = (block.citations ?? []).map((citation): ReplyEvent => ({
          kind: 'citation-add',
          choice,
          citation,
        }))
        return [...pieces, ...cited]
      }
      case 'thinking':
        return [{ kind: 'thinking-delta', choice, text: block.text }]
      case 'thinking-redacted':
        return [{ kind: 'thinking-redact', choice, data: block.data }]
      case 'tool-call':
        return [
          { kind: 'tool-call-start', choice, call: at, id: block.id, name: block.name },
          { kind: 'tool-call-delta', choice, call: at, text: block.argumentsText },
        ]
      case 'image':
        return [{ kind: 'image-add', choice, media: block.media }]
      case 'refusal':
        return [{ kind: 'refusal-delta', choice, text: block.text }]
    }
  })
}

type Spoken = { readonly choices: { readonly message: { readonly content: string | null } }[] }
type Chunk = { readonly choices: { readonly index: number; readonly delta: { readonly content?: string | null } }[] }

function plainContents(choices: readonly Choice[]): (string | null)[] {
  const body = openaiChat.writeAnswer(plainAsk, { choices, usage: undefined }, name)
  const answer: Spoken = JSON.parse(Buffer.from(body).toString())
  return answer.choices.map(({ message }) => message.content)
}

/** The streamed text of each choice, with the events of all choices interleaved. */
function streamedContents(choices: readonly Choice[]): string[] {
  const writer = openaiChat.openWriter(streamAsk, name)
  const waiting = choices.map(({ blocks }, index) => eventsOf(blocks, index))
  const contents = choices.map(() => '')
  while (waiting.some((events) => events.length > 0)) {
    const written = Buffer.from(writer.write(waiting.flatMap((events) => events.splice(0, 1))) ?? '').toString()
    for (const line of written.split('\n\n').filter((event) => event.startsWith('data: '))) {
      const { choices: told }: Chunk = JSON.parse(line.slice('data: '.length))
      for (const { index, delta } of told) contents[index] += delta.content ?? ''
    }
  }
  return contents
}

test.each([
  ['a tool call', call],
  ['thinking', { kind: 'thinking', text: 'Hm.' }],
  ['redacted thinking', { kind: 'thinking-redacted', data: 'x' }],
  ['an image', { kind: 'image', media }],
] as const)('text before and after %s is separated by a blank line, whole and streamed', (_name, between) => {
  const blocks = [between, text('Let me see.'), between, between, text('So.'), text(' Yes.'), between]
  const choices: Choice[] = [{ blocks, finish: 'stop' }]
  expect(plainContents(choices)).toEqual(['Let me see.\n\nSo. Yes.'])
  expect(streamedContents(choices)).toEqual(['Let me see.\n\nSo. Yes.'])
})

test('texts separated only by a citation or another choice are one text', () => {
  const cited: AssistantBlock = { kind: 'text', text: 'It rains', citations: [page] }
  const choices: Choice[] = [
    { blocks: [cited, text(' in Oslo.')], finish: 'stop' },
    { blocks: [{ kind: 'thinking', text: 'Hm.' }, text('Rain, and a lot of it.')], finish: 'stop' },
  ]
  const said = ['It rains in Oslo.', 'Rain, and a lot of it.']
  expect(plainContents(choices)).toEqual(said)
  expect(streamedContents(choices)).toEqual(said)
})

test('an image of a reply is in the form of other gateways, whole and streamed', () => {
  const blocks: AssistantBlock[] = [text('Here:'), { kind: 'image', media }]
  const images = [{ type: 'image_url', image_url: { url: 'data:image/png;base64,AAAA' } }]
  const whole = openaiChat.writeAnswer(plainAsk, { choices: [{ blocks, finish: 'stop' }], usage: undefined }, name)
  expect(JSON.parse(Buffer.from(whole).toString()).choices[0].message).toMatchObject({ content: 'Here:', images })
  const streamed = openaiChat.openWriter(streamAsk, name).write(eventsOf(blocks.slice(1), 0))
  expect(Buffer.from(streamed ?? '').toString()).toContain(`"images":${JSON.stringify(images)}`)
})

type Listed = { readonly reasoning_content?: string; readonly thinking_blocks?: Json; readonly annotations?: Json }

const covers = (start_index: number, end_index: number, url: string) => ({
  type: 'url_citation',
  url_citation: { start_index, end_index, url, title: url },
})

test.each<ReplyEvent>([{ kind: 'heartbeat' }, { kind: 'hosted-tool-run', searches: 1, foundBytes: 0 }])(
  'a sign of life is the chunk with the role, and an empty chunk once a choice has begun: %o',
  (alive) => {
    const writer = openaiChat.openWriter(streamAsk, name)
    const written = (...events: ReplyEvent[]) => Buffer.from(writer.write(events) ?? '').toString()
    expect(written(alive)).toContain('"delta":{"role":"assistant"}')
    expect(written(alive)).toMatch(/^data: .*"delta":\{\},"logprobs":null,"finish_reason":null.*\n\n$/)
    expect(written({ kind: 'text-delta', choice: 0, text: 'Hi' })).toContain('"delta":{"content":"Hi"}')
  },
)

test('a sign of life after the finish of a choice belongs to another choice, and there is none after the last', () => {
  const writer = openaiChat.openWriter({ ...streamAsk, choices: 2 }, name)
  const written = (...events: ReplyEvent[]) => Buffer.from(writer.write(events) ?? '').toString()
  written({ kind: 'text-delta', choice: 0, text: 'Hi' }, finish(0))
  expect(written({ kind: 'heartbeat' })).toContain('"choices":[{"index":1,"delta":{"content":""}')
  written({ kind: 'text-delta', choice: 1, text: 'Hi' }, finish(1))
  expect(written({ kind: 'heartbeat' })).toBe('')
})

test('a sign of life amid a text or a call goes on with it, and adds nothing to it', () => {
  const writer = openaiChat.openWriter(streamAsk, name)
  const deltas = (...events: ReplyEvent[]) => {
    const told = Buffer.from(writer.write([...events, { kind: 'heartbeat' }]) ?? '').toString()
    return JSON.parse(told.trimEnd().split('\n\n').at(-1)?.slice('data: '.length) ?? '').choices[0].delta
  }
  expect(deltas({ kind: 'text-delta', choice: 0, text: 'Hi' })).toEqual({ content: '' })
  expect(deltas({ kind: 'thinking-delta', choice: 0, text: 'Hm' })).toEqual({})
  const nothing = { tool_calls: [{ index: 1, function: { arguments: '' } }] }
  expect(deltas({ kind: 'tool-call-start', choice: 0, call: 1, id: 'c', name: 'f' })).toEqual(nothing)
  expect(deltas({ kind: 'tool-call-delta', choice: 0, call: 1, text: '{' })).toEqual(nothing)
})

test('an answer of which nothing but a sign of life came has an empty content, as a whole one has', () => {
  const writer = openaiChat.openWriter(streamAsk, name)
  const written = Buffer.from(writer.write([{ kind: 'heartbeat' }, finish(0)]) ?? '').toString()
  const told = written.trimEnd().split('\n\n')
  expect(told.map((event) => JSON.parse(event.slice('data: '.length)).choices[0].delta)).toEqual([
    { role: 'assistant' },
    { content: '' },
    {},
  ])
})

test('thinking blocks and citations are streamed in one delta before the finish, as in a whole answer', () => {
  const thinking: AssistantBlock = { kind: 'thinking', text: 'Hm.', signature: 's' }
  const cited: AssistantBlock = {
    kind: 'text',
    text: 'It rains.',
    // A document of the prompt has no address, and is not shown.
    citations: [{ title: 'A document' }, page, { url: 'https://pages.example/b' }],
  }
  const blocks = [thinking, cited, call, text('Still.'), { ...cited, text: 'It snows.' }]
  const body = openaiChat.writeAnswer(plainAsk, { choices: [{ blocks, finish: 'stop' }], usage: undefined }, name)
  const [whole]: { message: Listed }[] = JSON.parse(Buffer.from(body).toString()).choices
  const writer = openaiChat.openWriter(streamAsk, name)
  const signed: ReplyEvent = { kind: 'thinking-sign', choice: 0, text: 'Hm.', signature: 's' }
  const events = [signed, ...eventsOf(blocks, 0), { kind: 'choice-finish', choice: 0, finish: 'stop' } as const]
  const written = Buffer.from(writer.write(events) ?? '').toString()
  const deltas = written.split('\n\n').flatMap((event): Listed[] => {
    return event === '' ? [] : [JSON.parse(event.slice('data: '.length)).choices[0].delta]
  })
  const { thinking_blocks, annotations } = whole?.message ?? {}
  // Without an empty `reasoning_content` LiteLLM would skip the delta.
  expect(deltas.at(-2)).toEqual({ reasoning_content: '', thinking_blocks, annotations } as Listed)
  expect(deltas.filter((delta) => 'annotations' in delta || 'thinking_blocks' in delta)).toHaveLength(1)
  expect(annotations).toEqual([
    covers(0, 9, 'https://pages.example/a'),
    covers(0, 9, 'https://pages.example/b'),
    covers(9, 26, 'https://pages.example/a'),
    covers(9, 26, 'https://pages.example/b'),
  ])
})

const finish = (choice: number): ReplyEvent => ({ kind: 'choice-finish', choice, finish: 'stop' })

test('every choice begins before one of them finishes', () => {
  const writer = openaiChat.openWriter({ ...streamAsk, choices: 3 }, name)
  const said: ReplyEvent[] = [{ kind: 'text-delta', choice: 1, text: 'Yes.' }, finish(1)]
  const later: ReplyEvent[] = [{ kind: 'text-delta', choice: 2, text: 'No.' }, finish(2), finish(0)]
  const written = [said, later].map((events) => Buffer.from(writer.write(events) ?? '').toString())
  const told = written.join('').trimEnd().split('\n\n')
  expect(told.map((event) => JSON.parse(event.slice('data: '.length)).choices[0])).toMatchObject([
    { index: 1, delta: { role: 'assistant', content: 'Yes.' } },
    { index: 0, delta: { role: 'assistant', content: '' } },
    { index: 2, delta: { role: 'assistant', content: '' } },
    { index: 1, delta: {}, finish_reason: 'stop' },
    { index: 2, delta: { content: 'No.' } },
    { index: 2, delta: {}, finish_reason: 'stop' },
    { index: 0, delta: {}, finish_reason: 'stop' },
  ])
})

test('a choice whose vendor never says why it ended is finished at the end of the stream', () => {
  const writer = openaiChat.openWriter({ ...streamAsk, choices: 3 }, name)
  const signed: ReplyEvent = { kind: 'thinking-sign', choice: 0, text: 'Hm.', signature: 's' }
  writer.write([...eventsOf([text('Yes.')], 0), signed, ...eventsOf([call], 1)])
  const told = Buffer.from(writer.closing(undefined)).toString().trimEnd().split('\n\n')
  expect(told.pop()).toBe('data: [DONE]')
  expect(told.map((event) => JSON.parse(event.slice('data: '.length)).choices[0])).toMatchObject([
    { index: 0, delta: { thinking_blocks: [{ signature: 's' }] } },
    { index: 2, delta: { role: 'assistant', content: '' } },
    { index: 0, finish_reason: 'stop' },
    { index: 1, finish_reason: 'tool_calls' },
    { index: 2, finish_reason: 'stop' },
  ])
})

test('a whole answer has a fingerprint, which is null, because some clients require the field', () => {
  const body = openaiChat.writeAnswer(plainAsk, { choices: [], usage: undefined }, name)
  expect(JSON.parse(Buffer.from(body).toString())).toHaveProperty('system_fingerprint', null)
})
