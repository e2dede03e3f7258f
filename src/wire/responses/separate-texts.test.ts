import { expect, test } from 'bun:test'
import type { JsonObject } from '../../base/json.ts'
import { openaiChat } from '../openai/chat.ts'
import { name, plainAsk, streamAsk } from '../openai/testing.ts'
import { readAnswer } from './read-answer.ts'
import { openReader } from './reply-reader.ts'

const part = (text: string) => ({ type: 'output_text', text, annotations: [] })
const message = (id: string, ...texts: string[]) => ({
  type: 'message',
  id,
  role: 'assistant',
  content: texts.map(part),
})
const reasoning = { type: 'reasoning', id: 'rs_1', summary: [{ type: 'summary_text', text: 'Hm.' }] }
const call = { type: 'function_call', id: 'fc_1', call_id: 'call_1', name: 'f', arguments: '{}' }

function plainText(output: readonly JsonObject[]): string {
  const body = Buffer.from(JSON.stringify({ status: 'completed', output }))
  const answer = Buffer.from(openaiChat.writeAnswer(plainAsk, readAnswer(body), name)).toString()
  const { choices } = JSON.parse(answer) as { choices: { message: { content: string } }[] }
  return choices[0]?.message.content ?? ''
}

function eventsOf(item: JsonObject): JsonObject[] {
  const texts = item['type'] === 'message' ? (item['content'] as { text: string }[]) : []
  return [
    { type: 'response.output_item.added', item: { ...item, arguments: '', summary: [], content: [] } },
    ...texts.map(({ text }) => ({ type: 'response.output_text.delta', item_id: item['id'], delta: text })),
    { type: 'response.output_item.done', item },
  ]
}

function streamedText(output: readonly JsonObject[]): string {
  const reader = openReader()
  const writer = openaiChat.openWriter(streamAsk, name)
  const chunks = output.flatMap(eventsOf).map((event) => {
    return Buffer.from(writer.write(reader.read(Buffer.from(`data: ${JSON.stringify(event)}\n\n`))) ?? []).toString()
  })
  const said = chunks.join('').matchAll(/"content":("(?:[^"\\]|\\.)*")/g)
  return Array.from(said, ([, text = '""']) => JSON.parse(text) as string).join('')
}

test.each([
  ['next to each other', [message('msg_1', 'A'), message('msg_2', 'B')], 'A\n\nB'],
  ['with reasoning between them', [message('msg_1', 'A'), reasoning, message('msg_2', 'B')], 'A\n\nB'],
  ['with a call between them', [message('msg_1', 'A'), call, message('msg_2', 'B')], 'A\n\nB'],
  ['the first of them empty', [message('msg_1', ''), message('msg_2', 'B')], 'B'],
  ['as parts of one', [message('msg_1', 'A', 'B')], 'AB'],
] as const)('messages of an answer are one text in chat, whole and streamed: %s', (_, output, text) => {
  expect([plainText(output), streamedText(output)]).toEqual([text, text])
})
