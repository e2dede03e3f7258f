import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { startTestGateway, type BillLine, type SeenCall, type TestGateway } from '../support/gateway.ts'
import { readFacts } from './ask-facts.ts'
import { ask, goOn, type Answer } from './client.ts'
import { readCorpus, speechOf, type Example, type Speech, type Protocol } from './corpus.ts'
import { canonical, fieldsIn, itemsIn, parse, type Fields, type Value } from './exact-json.ts'
import { checkGolden, checkNoneLeft, showEvents, showGot, showSent } from './golden.ts'
import { readReply, readUsage } from './reply-facts.ts'
import { asks, expectUsage, replies } from './survives.ts'

/** Every conversation of the corpus through the gateway to every vendor's simulator and back, plain and streamed. */

let gateway: TestGateway
beforeAll(async () => {
  gateway = await startTestGateway({ mode: 'leased' })
})
afterAll(() => gateway.close())

const corpus = readCorpus()
const speeches = {
  chat: 'common',
  messages: 'anthropic',
  responses: 'responses',
} as const satisfies Record<Protocol, Speech>

type Call = { readonly seen: SeenCall; readonly body: Fields }
type Exchange = {
  readonly model: string
  readonly asked: Fields
  readonly answer: Answer
  /** What the vendor received; undefined if the gateway refused the request. */
  readonly call: Call | undefined
}

async function control(path: string, method = 'GET'): Promise<Response> {
  return fetch(`${gateway.sandboxUrl}${path}`, { method })
}

async function converse(example: Example, model: string, streaming: Fields): Promise<Exchange[]> {
  const { protocol, headers, body, models, moves, later } = example
  const exchanges: Omit<Exchange, 'call'>[] = []
  const field = protocol === 'responses' ? 'input' : 'messages'
  let history = itemsIn(body[field])
  await control('/__calls', 'DELETE')
  for (let turn = 0; turn <= later.length; turn++) {
    const here = moves ? (models[(models.indexOf(model) + turn) % models.length] ?? model) : model
    const asked: Fields = { model: here, ...body, [field]: history, ...streaming }
    const answer = await ask((path, body, more) => gateway.post(path, body, more), protocol, asked, headers)
    exchanges.push({ model: here, asked, answer })
    const next = later[turn]
    if (answer.status !== 200 || next === undefined) break
    history = goOn(protocol, history, answer, next)
  }
  // Every answer takes one call; a refusal, which ends the conversation, takes one or none.
  const calls = await gateway.calls()
  expect(calls.length).toBeGreaterThanOrEqual(exchanges.filter(({ answer }) => answer.status === 200).length)
  expect(calls.length).toBeLessThanOrEqual(exchanges.length)
  return exchanges.map((exchange, turn) => {
    const seen = calls[turn]
    return { ...exchange, call: seen === undefined ? undefined : { seen, body: fieldsIn(parse(seen.text)) } }
  })
}

/** The vendor's answer to the same request without a gateway, under another key and so with another prompt cache. */
async function vendorSays({ seen }: Call): Promise<Fields> {
  const kept = Object.entries(seen.headers).filter(([name]) => name === 'content-type' || name.startsWith('anthropic-'))
  const key = { authorization: 'Bearer other', 'x-goog-api-key': 'other' }
  const headers = { ...Object.fromEntries(kept), ...key }
  const response = await fetch(`${gateway.sandboxUrl}${seen.path}`, { method: 'POST', headers, body: seen.text })
  expect(response.status).toBe(200)
  return fieldsIn(parse(await response.text()))
}

/** OpenAI has two protocols; the path of the call tells which was used. */
function speechOfCall(model: string, { seen }: Call): Speech {
  return seen.path.endsWith('/responses') ? 'responses' : speechOf(model)
}

async function checkSurvival({ protocol }: Example, { model, asked, answer, call }: Exchange): Promise<void> {
  if (call === undefined || answer.status !== 200) return
  const speech = speechOfCall(model, call)
  const isPassed = speech === speeches[protocol]
  const facts = { asked: readFacts(speeches[protocol], asked), sent: readFacts(speech, call.body) }
  for (const row of asks) {
    try {
      row.check({ ...facts, speech, model, isPassed, sentText: call.seen.text })
    } catch (thrown) {
      throw new Error(`lost on the way there: ${row.what}`, { cause: thrown })
    }
  }
  const said = readReply(speech, await vendorSays(call))
  const got = readReply(speeches[protocol], answer.body)
  const { isAlone } = facts.asked
  for (const row of replies) {
    try {
      row.check({ protocol, request: asked, speech, isAlone, said, got })
    } catch (thrown) {
      throw new Error(`lost on the way back: ${row.what}`, { cause: thrown })
    }
  }
}

async function checkUsage({ protocol }: Example, { answer, call }: Exchange): Promise<void> {
  if (call === undefined || answer.status !== 200) return
  const { data } = (await (await control(`/__bill?ref=${call.seen.ref}`)).json()) as { data: BillLine[] }
  expectUsage(readUsage(speeches[protocol], answer.body), data[0]?.units ?? {})
}

const streamFields: ReadonlySet<string> = new Set(['stream', 'stream_options'])

function withoutStream(body: Fields): Fields {
  return Object.fromEntries(Object.entries(body).filter(([name]) => !streamFields.has(name)))
}

/** Streamed and plain, the conversation is the same. */
function checkSame({ protocol }: Example, plain: Exchange, streamed: Exchange, turn: number): void {
  expect(streamed.answer.status).toBe(plain.answer.status)
  const sent = [streamed, plain].map(({ call }) => withoutStream(call?.body ?? {}))
  const speech = plain.call === undefined ? speechOf(plain.model) : speechOfCall(plain.model, plain.call)
  // Vendors leave some fields out of one of the two (`annotations: []`), and the client repeats them as they came.
  const [pieces, whole] = sent.map((body) => (turn === 0 ? canonical(body) : readFacts(speech, body)))
  expect(pieces).toEqual(whole)
  if (plain.answer.status !== 200) return
  const [got, said] = [streamed, plain].map(({ answer }) => readReply(speeches[protocol], answer.body))
  // Google streams some text before it refuses; a plain answer holds that text back.
  if (said?.finish === 'refusal') expect(got?.finish).toBe('refusal')
  else expect(got).toEqual(said)
}

function show(plain: readonly Exchange[], streamed: readonly Exchange[]): Value {
  return plain.map(({ model, answer, call }, turn): Value => {
    const last = plain[turn - 1]
    const before = last?.model === model ? last.call?.body : undefined
    const headers = Object.entries(call?.seen.headers ?? {}).filter(([name]) => name.startsWith('anthropic-'))
    return {
      ...(call !== undefined && {
        to: call.seen.path,
        ...(headers.length > 0 && { headers: Object.fromEntries(headers) }),
        sent: showSent(call.body, before),
      }),
      ...(answer.status !== 200 && { status: answer.status }),
      got: showGot(answer.body),
      ...(answer.status === 200 && { stream: showEvents(streamed[turn]?.answer.events ?? []) }),
    }
  })
}

const streamed = {
  chat: { stream: true, stream_options: { include_usage: true } },
  messages: { stream: true },
  responses: { stream: true },
} as const satisfies Record<Protocol, Fields>

const pairs = (['chat', 'messages', 'responses'] as const).flatMap((protocol) =>
  (['common', 'anthropic', 'google'] as const).map((speech) => ({ protocol, speech })),
)

describe.each(pairs)('$protocol clients and $speech vendors', ({ protocol, speech }) => {
  for (const example of corpus.filter((one) => one.protocol === protocol)) {
    test.each(example.models.filter((model) => speechOf(model) === speech))(
      `${example.name} through %s keeps its meaning, plain and streamed`,
      async (model) => {
        const plain = await converse(example, model, {})
        const pieces = await converse(example, model, streamed[protocol])
        for (const exchange of plain) await checkSurvival(example, exchange)
        for (const exchange of [...plain, ...pieces]) await checkUsage(example, exchange)
        expect(pieces.length).toBe(plain.length)
        for (const [turn, exchange] of plain.entries()) checkSame(example, exchange, pieces[turn] ?? exchange, turn)
        checkGolden(example.name, model, show(plain, pieces))
      },
    )
  }

  test('the books agree with the vendors’ bills', () => gateway.assertBooks())
})

test('every conversation has a description, and every golden belongs to a conversation', () => {
  expect(corpus.filter(({ shows }) => shows === '').map(({ name }) => name)).toEqual([])
  checkNoneLeft(new Map(corpus.map(({ name, models }) => [name, models])))
})
