import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { argumentsTexts } from '../../../test/support/conversations.ts'
import type { JsonObject } from '../../base/json.ts'
import { EventSplitter, dataOf } from '../../base/sse.ts'
import { markGoogle, type AssistantBlock, type Reply, type ReplyEvent } from '../../capabilities/conversation.ts'
import { textIn } from '../loose.ts'
import { responsesChat } from './chat.ts'
import { seal, unseal } from './sealed.ts'
import { askOf, name } from './testing.ts'

const text = fc.string({ minLength: 1, maxLength: 20 })
const id = fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/)
const thought = fc.oneof(
  fc.record({ kind: fc.constant('thinking' as const), text, signature: text }),
  fc.record({ kind: fc.constant('thinking' as const), text }),
  fc.record({ kind: fc.constant('thinking-redacted' as const), data: text }),
)
const said = fc.record({ kind: fc.constant('text' as const), text })
const refusal = fc.record({ kind: fc.constant('refusal' as const), text })
const signature = fc.option(text.map(markGoogle), { nil: undefined })
const call = fc
  .record({ id: fc.uuid(), name: id, argumentsText: argumentsTexts, signature })
  .map(({ signature: google, ...called }): AssistantBlock => {
    return { kind: 'tool-call', ...called, ...(google !== undefined && { signature: google }) }
  })

/** Neighbouring blocks of one kind are merged, in this protocol as at the vendors. */
const blocks = fc
  .array(fc.oneof(thought, said, refusal, call), { maxLength: 6 })
  .map((given) => given.filter(({ kind }, index) => kind === 'tool-call' || kind !== given[index - 1]?.kind))
  .filter((given) => given.length > 0)
const usage = fc.record({ input: fc.nat(1_000), cachedInput: fc.nat(1_000), output: fc.nat(1_000) })
const reply = fc.record({ blocks, usage }).map(({ blocks: given, usage: used }): Reply => {
  const hasCalls = given.some(({ kind }) => kind === 'tool-call')
  return { choices: [{ blocks: given, finish: hasCalls ? 'tool-calls' : 'stop' }], usage: used }
})

const keeping = { include: ['reasoning.encrypted_content'], reasoning: { summary: 'auto' } }

function outputOf(given: Reply, body: JsonObject = keeping): JsonObject[] {
  const written = Buffer.from(responsesChat.writeAnswer(askOf(body), given, name)).toString()
  return (JSON.parse(written) as { output: JsonObject[] }).output
}

test('output that a client sends back unchanged is read as the original reply', () => {
  fc.assert(
    fc.property(reply, (given) => {
      const input = [{ role: 'user', content: 'Hi' }, ...outputOf(given), { role: 'user', content: 'And?' }]
      const { turns } = responsesChat.readConversation(askOf({ ...keeping, input }))
      expect(turns[1]).toEqual({ role: 'assistant', blocks: given.choices[0]?.blocks ?? [] })
    }),
  )
})

test('output sent back without seals loses only its thinking, and calls keep their signatures', () => {
  fc.assert(
    fc.property(reply, (given) => {
      const input = [{ role: 'user', content: 'Hi' }, ...outputOf(given, {}), { role: 'user', content: 'And?' }]
      const { turns } = responsesChat.readConversation(askOf({ input }))
      const kept = given.choices[0]?.blocks.filter(({ kind }) => !kind.startsWith('thinking')) ?? []
      // Texts with thinking between them are two messages, and stay two texts.
      const apart = kept.map((block, index) => {
        return block.kind === 'text' && kept[index - 1]?.kind === 'text' ? { ...block, isApart: true } : block
      })
      expect(turns.flatMap(({ role, blocks: own }) => (role === 'assistant' ? own : []))).toEqual(apart)
    }),
  )
})

/** A reply as stream events, in small pieces. */
function eventsOf({ choices, usage: used }: Reply): ReplyEvent[] {
  const events: ReplyEvent[] = [{ kind: 'reply-start' }]
  const choice = 0
  let calls = 0
  for (const block of choices[0]?.blocks ?? []) {
    if (block.kind === 'text')
      events.push(...Array.from(block.text, (piece) => ({ kind: 'text-delta' as const, choice, text: piece })))
    if (block.kind === 'refusal') events.push({ kind: 'refusal-delta', choice, text: block.text })
    if (block.kind === 'thinking') {
      events.push(...Array.from(block.text, (piece) => ({ kind: 'thinking-delta' as const, choice, text: piece })))
      const { text: whole, signature: signed } = block
      if (signed !== undefined) events.push({ kind: 'thinking-sign', choice, text: whole, signature: signed })
    }
    if (block.kind === 'thinking-redacted') events.push({ kind: 'thinking-redact', choice, data: block.data })
    if (block.kind === 'tool-call') {
      const { id: callId, name: called, argumentsText, signature: signed } = block
      const head = { id: callId, name: called, ...(signed !== undefined && { signature: signed }) }
      events.push({ kind: 'tool-call-start', choice, call: calls, ...head })
      const pieces = Array.from(argumentsText)
      events.push(...pieces.map((piece) => ({ kind: 'tool-call-delta' as const, choice, call: calls, text: piece })))
      calls++
    }
  }
  events.push({ kind: 'choice-finish', choice, finish: choices[0]?.finish ?? 'stop' })
  if (used !== undefined) events.push({ kind: 'usage-count', usage: used })
  return events
}

type Told = { type: string; sequence_number: number; output_index?: number; item?: JsonObject; delta?: string }
type End = { response: { output: JsonObject[]; usage: JsonObject } }

test('a stream that is cut anywhere adds up to the items of the whole answer', () => {
  fc.assert(
    fc.property(reply, fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 20 }), (given, cuts) => {
      const writer = responsesChat.openWriter(askOf({ ...keeping, stream: true }), name)
      const written = [...eventsOf(given).map((event) => writer.write([event])), writer.closing(given.usage)]
      const whole = Buffer.concat(written.filter((piece) => piece !== undefined))
      const splitter = new EventSplitter(1_000_000)
      const told: Told[] = []
      for (let at = 0, turn = 0; at < whole.length; turn++) {
        const end = at + (cuts[turn % cuts.length] ?? 1)
        for (const event of splitter.push(whole.subarray(at, end))) told.push(JSON.parse(dataOf(event)) as Told)
        at = end
      }
      expect(told.map(({ sequence_number: number }) => number)).toEqual(told.map((_, index) => index))
      const { response } = told.at(-1) as unknown as End
      expect(response.output).toEqual(outputOf(given))
      const of = (type: string) => told.filter((event) => event.type === type)
      const places = response.output.map((_, index) => index)
      expect(of('response.output_item.added').map(({ output_index: place }) => place)).toEqual(places)
      const done = of('response.output_item.done').toSorted((a, b) => (a.output_index ?? 0) - (b.output_index ?? 0))
      expect(done.map(({ item }) => item)).toEqual(response.output)
      for (const [place, { type, arguments: argumentsText }] of response.output.entries()) {
        if (type !== 'function_call') continue
        const deltas = of('response.function_call_arguments.delta').filter((event) => event.output_index === place)
        expect(deltas.map(({ delta }) => delta).join('')).toBe(textIn(argumentsText))
      }
    }),
    { numRuns: 100 },
  )
})

test('sealed content is unsealed unchanged, and other strings are not unsealed', () => {
  const sealed = fc.oneof(
    fc.record({ kind: fc.constant('thought' as const), text, signature: text }),
    fc.record({ kind: fc.constant('redacted' as const), data: text }),
    fc.record({ kind: fc.constant('call' as const), signature: text }),
  )
  fc.assert(fc.property(sealed, (given) => expect(unseal(seal(given))).toEqual(given)))
  fc.assert(fc.property(fc.string(), (given) => expect(unseal(given)).toBeUndefined()))
  fc.assert(fc.property(fc.base64String(), (given) => expect(unseal(`tpk_${given}`)).toBeUndefined()))
})
