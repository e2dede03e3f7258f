import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { EventSplitter } from '../../base/sse.ts'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import { openReader, readAnswer } from './read-answer.ts'

/** Any text but the empty one, which gives no event. */
const text = fc.string({ unit: 'binary', minLength: 1, maxLength: 12 })
const part = fc.oneof(
  text.map((said) => ({ text: said })),
  text.map((said) => ({ text: said, thought: true })),
  fc
    .record({ name: fc.constantFrom('f', 'g'), args: fc.dictionary(fc.string(), fc.jsonValue()) })
    .map((functionCall) => ({
      functionCall,
      thoughtSignature: 'c2ln',
    })),
)
const counts = fc.record({
  promptTokenCount: fc.nat(99),
  candidatesTokenCount: fc.nat(99),
  thoughtsTokenCount: fc.nat(99),
})
const reply = fc.record({ parts: fc.array(part, { maxLength: 8 }), counts, responseId: fc.constantFrom('r1', 'r2') })

type Written = { parts: readonly object[]; counts: object; responseId: string }

/** The same reply as a stream: one event for each part, then the end. */
function streamOf({ parts, counts: usageMetadata, responseId }: Written): Uint8Array {
  const head = { responseId, usageMetadata }
  const responses = [
    ...parts.map((piece) => ({ ...head, candidates: [{ content: { parts: [piece], role: 'model' }, index: 0 }] })),
    { ...head, candidates: [{ content: { role: 'model' }, finishReason: 'STOP', index: 0 }] },
  ]
  return Buffer.from(responses.map((response) => `data: ${JSON.stringify(response)}\r\n\r\n`).join(''))
}

function read(chunks: readonly Uint8Array[]): ReplyEvent[] {
  const splitter = new EventSplitter(1_000_000)
  const reader = openReader()
  return chunks.flatMap((chunk) => splitter.push(chunk)).flatMap((event) => reader.read(event))
}

function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const cuts = [0, ...places.map((place) => place % (bytes.length + 1)).toSorted((a, b) => a - b), bytes.length]
  return cuts.slice(1).map((end, index) => bytes.subarray(cuts[index], end))
}

test('a stream reads the same wherever its packets end', () => {
  fc.assert(
    fc.property(reply, fc.array(fc.nat()), (written, places) => {
      const bytes = streamOf(written)
      expect(read(cutAt(bytes, places))).toEqual(read([bytes]))
    }),
  )
})

test('a stream that is cut off never reports its end', () => {
  fc.assert(
    fc.property(reply, fc.nat(), (written, place) => {
      const bytes = streamOf(written)
      const kinds = read([bytes.subarray(0, place % bytes.length)]).map(({ kind }) => kind)
      expect(kinds).not.toContain('choice-finish')
      expect(kinds).not.toContain('reply-end')
    }),
  )
})

/** Text, thinking and calls of a stream, each joined. */
function gather(events: readonly ReplyEvent[]) {
  const calls: { id: string; name: string; text: string; signature: string | undefined }[] = []
  let said = ''
  let thought = ''
  for (const event of events) {
    if (event.kind === 'text-delta') said += event.text
    if (event.kind === 'thinking-delta') thought += event.text
    if (event.kind === 'tool-call-start') {
      calls.push({ id: event.id, name: event.name, text: '', signature: event.signature })
    }
    const open = event.kind === 'tool-call-delta' ? calls[event.call] : undefined
    if (open !== undefined && event.kind === 'tool-call-delta') open.text += event.text
  }
  const usage = events.findLast((event) => event.kind === 'usage-count')?.usage
  const finish = events.find((event) => event.kind === 'choice-finish')?.finish
  return { said, thought, calls, usage, finish }
}

test('a whole answer and a stream give the same text, calls and usage, and nothing is lost', () => {
  fc.assert(
    fc.property(reply, (written) => {
      const { parts, counts: usageMetadata, responseId } = written
      const candidates = [{ content: { role: 'model', parts }, finishReason: 'STOP' }]
      const whole = readAnswer(Buffer.from(JSON.stringify({ candidates, usageMetadata, responseId })))
      const streamed = gather(read([streamOf(written)]))
      const blocks = whole.choices[0]?.blocks ?? []
      expect(streamed).toEqual({
        said: blocks.map((block) => (block.kind === 'text' ? block.text : '')).join(''),
        thought: blocks.map((block) => (block.kind === 'thinking' ? block.text : '')).join(''),
        calls: blocks.flatMap((block) =>
          block.kind === 'tool-call'
            ? [{ id: block.id, name: block.name, text: block.argumentsText, signature: block.signature }]
            : [],
        ),
        usage: whole.usage,
        finish: whole.choices[0]?.finish,
      })
      expect(streamed.said).toBe(
        parts.map((piece) => ('text' in piece && !('thought' in piece) ? piece.text : '')).join(''),
      )
      const args = parts.flatMap((piece) => ('functionCall' in piece ? [JSON.stringify(piece.functionCall.args)] : []))
      expect(streamed.calls.map((call) => call.text)).toEqual(args)
    }),
  )
})
