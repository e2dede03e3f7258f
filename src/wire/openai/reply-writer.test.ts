import { expect, test } from 'bun:test'
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

const cited = (said: string, ...pages: { url?: string; title?: string }[]): AssistantBlock => {
  return { kind: 'text', text: said, citations: pages }
}
type Cited = { readonly annotations?: readonly { readonly url_citation: object }[] }

test('a citation has the positions of the text since the citation before it, whole and streamed', () => {
  const other = { url: 'https://pages.example/b', title: 'B' }
  // A document of the prompt has no address, and is not shown.
  const blocks = [text('Well: '), cited('it rains', { title: 'A document' }, page, other), call, cited('So.', page)]
  const choices: Choice[] = [{ blocks, finish: 'stop' }]
  const body = openaiChat.writeAnswer(plainAsk, { choices, usage: undefined }, name)
  const answer: { choices: { message: Cited }[] } = JSON.parse(Buffer.from(body).toString())
  const written = Buffer.from(openaiChat.openWriter(streamAsk, name).write(eventsOf(blocks, 0)) ?? '').toString()
  const deltas = written.split('\n\n').flatMap((line): Cited[] => {
    const chunk: { choices: { delta: Cited }[] } = JSON.parse(line.slice('data: '.length) || '{"choices":[]}')
    return chunk.choices.map(({ delta }) => delta)
  })
  // The second text stands behind a blank line.
  const expected = [
    { ...page, title: page.url, start_index: 0, end_index: 14 },
    { ...other, start_index: 0, end_index: 14 },
    { ...page, title: page.url, start_index: 14, end_index: 19 },
  ]
  for (const said of [answer.choices.map(({ message }) => message), deltas]) {
    const found = said.flatMap(({ annotations = [] }) => annotations)
    expect(found.map((annotation) => annotation.url_citation)).toEqual(expected)
  }
})
