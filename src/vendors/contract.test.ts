import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { restOf } from '../../test/support/rest-of.ts'
import type { ErrorKind } from '../base/errors.ts'
import type { JsonObject } from '../base/json.ts'
import { EventSplitter } from '../base/sse.ts'
import type { ChatAsk, ChatCodec, ReplyReader } from '../capabilities/chat.ts'
import type { Reply, ReplyEvent } from '../capabilities/conversation.ts'
import { plainModel } from '../capabilities/testing.ts'
import { anthropicChat } from '../wire/anthropic/chat.ts'
import { readAnswer as readMessage } from '../wire/anthropic/read-answer.ts'
import { openReader as readMessageStream } from '../wire/anthropic/reply-reader.ts'
import { openaiChat } from '../wire/openai/chat.ts'
import { readAnswer as readCompletion } from '../wire/openai/read-answer.ts'
import { openReader as readCompletionStream } from '../wire/openai/reply-reader.ts'
import { vendors } from './index.ts'
import { plainContext } from './testing.ts'
import type { Call, CallContext, ChatAdapter } from './vendor.ts'

type Sent = {
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body: JsonObject
}

/** What a vendor was sent and answered, as seen on its wire. */
type Fixture = {
  readonly upstreamModel: string
  /** The call for a client of the vendor's protocol or, where no client speaks that, of the common protocol. */
  readonly sent: Sent
  /** The call for clients of the other protocols, where it differs. */
  readonly translated?: Sent
  readonly answer: JsonObject
  /** Raw events, irregular ones included. */
  readonly stream: readonly string[]
  /** What the answer and the stream used. */
  readonly counts: Readonly<Record<string, number>>
  readonly text: string
  readonly refusals: readonly {
    readonly status: number
    readonly body: JsonObject
    readonly kind: ErrorKind
    readonly retryable: boolean
  }[]
}

const folder = import.meta.dir

/** `<adapter>/fixtures/<vendor>.json`, beside the vendor's adapter. */
function fixtureOf(vendor: string): Fixture | undefined {
  const file = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(folder, entry.name, 'fixtures', `${vendor}.json`))
    .find((path) => existsSync(path))
  return file === undefined ? undefined : (JSON.parse(readFileSync(file, 'utf8')) as Fixture)
}

const traits = { ...plainModel, id: 'ours', choicesMax: 1 }
const secrets = { baseUrl: 'https://vendor.example/base', credential: 'vk-0123456789abcdef' }

function contextFor({ upstreamModel }: Fixture): CallContext {
  return { ...plainContext, ...secrets, upstreamModel }
}

/** A protocol that clients speak, and how a client reads its answer. */
type Client = { readonly codec: ChatCodec; readAnswer(body: Uint8Array): Reply; openReader(): ReplyReader }
const clients: readonly Client[] = [
  { codec: openaiChat, readAnswer: readCompletion, openReader: readCompletionStream },
  { codec: anthropicChat, readAnswer: readMessage, openReader: readMessageStream },
]

/** The same words are a request in every protocol that clients speak. */
function askOf(codec: ChatCodec, stream: boolean): ChatAsk {
  const body = { model: 'ours', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 50, stream }
  return codec.readAsk({ body, files: [], bodyBytes: 100, header: () => null }, () => traits)
}

function translated(chat: ChatAdapter, codec: ChatCodec, stream: boolean, context: CallContext) {
  const ask = askOf(codec, stream)
  return chat.translate(ask, codec.readConversation(ask), context)
}

/** Reads byte by byte, because a vendor's packets may end anywhere. */
function eventsIn(stream: string | Uint8Array): Uint8Array[] {
  const splitter = new EventSplitter(1_000_000)
  const events = [...Buffer.from(stream)].flatMap((byte) => splitter.push(Uint8Array.of(byte)))
  expect(restOf(splitter)).toBe('')
  return events
}

function readAll(reader: ReplyReader, stream: string | Uint8Array): ReplyEvent[] {
  return eventsIn(stream).flatMap((event) => [...reader.read(event)])
}

function textOf(events: readonly ReplyEvent[]): string {
  return events.map((event) => (event.kind === 'text-delta' ? event.text : '')).join('')
}

function textIn({ choices }: Reply): string {
  return (choices[0]?.blocks ?? []).map((block) => (block.kind === 'text' ? block.text : '')).join('')
}

const usageOf = (events: readonly ReplyEvent[]) => events.findLast((event) => event.kind === 'usage-count')?.usage
const kindsOf = (events: readonly ReplyEvent[]): ReadonlySet<string> => new Set(events.map(({ kind }) => kind))

const name = { requestId: 'req_1', createdAt: 1_794_700_000_000, elapsedMs: () => 0 }
const adapters = [...vendors].flatMap(([id, vendor]) =>
  vendor.chat === undefined ? [] : [[id, vendor, vendor.chat] as const],
)

test('every chat vendor has a fixture and every fixture a vendor', () => {
  expect(adapters.filter(([id]) => fixtureOf(id) === undefined).map(([id]) => id)).toEqual([])
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.json'))
  const named = files.map((file) => file.replace(/^.*[/\\]|\.json$/g, ''))
  expect(named.filter((id) => !vendors.has(id))).toEqual([])
})

/** Checks the call, and that the key is in one header and nowhere else. */
function expectCall(call: Call | undefined, sent: Sent): void {
  expect(call?.url).toBe(secrets.baseUrl + sent.path)
  expect(JSON.parse(textOfBody(call?.body))).toEqual(sent.body)
  expect(call?.headers).toMatchObject({
    'content-type': 'application/json',
    'x-client-request-id': 'att_1',
    ...sent.headers,
  })
  expect(Object.values(call?.headers ?? {}).filter((value) => value.includes(secrets.credential))).toHaveLength(1)
  expect(`${call?.url}${textOfBody(call?.body)}`).not.toContain(secrets.credential)
}

function textOfBody(body: Call['body'] | undefined): string {
  if (typeof body !== 'string') throw new Error('chat is asked for in text')
  return body
}

test.each([...vendors.values()].map((vendor) => [vendor.id, vendor] as const))(
  '%s: a key over its rate rests for as long as the vendor says',
  (_id, vendor) => {
    const base = { status_code: 1002, status_msg: 'x' }
    // One body in the form of each vendor.
    for (const body of [
      { error: { message: 'x' } },
      { code: 1302, message: 'x' },
      { reason: 'SystemThrottling', message: 'x' },
      { ErrCode: 500_044, ErrMsg: 'x' },
      { detail: { status: 'system_busy', message: 'x' } },
      { base_resp: base },
    ]) {
      const response = { status: 429, retryAfterSeconds: 7, body: JSON.stringify(body) }
      expect(vendor.explain(response, secrets)).toMatchObject({
        error: { kind: 'too-many', details: { retryAfterSeconds: 7 } },
        restCredentialSeconds: 7,
      })
    }
  },
)

describe.each(adapters)('the chat adapter of %s', (id, vendor, chat) => {
  const fixture = fixtureOf(id)
  if (fixture === undefined) return
  const context = contextFor(fixture)
  const own = clients.find(({ codec }) => codec.protocol === chat.protocol)
  const others = clients.filter((client) => client !== own)
  const answer = Buffer.from(JSON.stringify(fixture.answer))
  const stream = fixture.stream.join('')

  test.each(others.map(({ codec }) => [codec.protocol, codec] as const))(
    "a request from a client of %s is written in the vendor's own form",
    (_protocol, codec) => {
      expectCall(translated(chat, codec, true, context), fixture.translated ?? fixture.sent)
    },
  )

  test.each(others.map((client) => [client.codec.protocol, client] as const))(
    'a client of %s reads the same text and output tokens',
    (_protocol, { codec, ...client }) => {
      const ask = askOf(codec, false)
      const reply = client.readAnswer(codec.writeAnswer(ask, chat.readAnswer(answer), name))
      expect(textIn(reply)).toBe(fixture.text)
      const asked = askOf(codec, true)
      const writer = codec.openWriter({ ...asked, usageShown: true }, name)
      const read = readAll(chat.openReader(), stream)
      const written = [writer.write(read) ?? new Uint8Array(), writer.closing(usageOf(read))]
      const events = readAll(client.openReader(), Buffer.concat(written))
      expect(textOf(events)).toBe(fixture.text)
      expect(usageOf(events)?.output).toBe(fixture.counts['output'] ?? 0)
      expect(kindsOf(events)).toContain('choice-finish')
    },
  )

  test('the answer is read with its usage', () => {
    const reply = chat.readAnswer(answer)
    expect(textIn(reply)).toBe(fixture.text)
    expect(reply.usage).toMatchObject(fixture.counts)
  })

  test('the stream is read to its end with its usage', () => {
    const events = readAll(chat.openReader(), stream)
    expect(textOf(events)).toBe(fixture.text)
    expect(usageOf(events)).toMatchObject(fixture.counts)
    expect(kindsOf(events)).toContain('choice-finish')
    expect(kindsOf(events)).not.toContain('failure')
  })

  describe("pass-through for clients of the vendor's own protocol", () => {
    if (own === undefined || chat.pass === undefined) return
    const { codec } = own

    test('the request is passed through', () => {
      expectCall(chat.pass?.(askOf(codec, true), context), fixture.sent)
    })

    test('the answer is counted and carries our model id', () => {
      const passed = codec.passAnswer(askOf(codec, false), answer)
      expect(passed.usage).toMatchObject(fixture.counts)
      const shown = JSON.parse(Buffer.from(passed.body).toString()) as JsonObject
      expect(shown).toEqual({ ...fixture.answer, model: 'ours' })
    })

    test('the stream is counted, keeps its text and does not carry the upstream model', () => {
      const passing = codec.passStream(askOf(codec, true))
      const shown = eventsIn(stream).flatMap((event) => passing.take(event) ?? [])
      expect(passing.facts).toMatchObject({ ended: true, finished: true, failure: undefined })
      expect(passing.facts.usage).toMatchObject(fixture.counts)
      expect(passing.facts.outputEvents).toBeGreaterThan(0)
      const events = readAll(own.openReader(), Buffer.concat(shown))
      expect(textOf(events)).toBe(fixture.text)
      expect(kindsOf(events)).not.toContain('reply-end')
      expect(kindsOf(readAll(own.openReader(), passing.closing()))).toContain('reply-end')
      expect(Buffer.concat(shown).toString()).not.toContain(`"model":"${fixture.upstreamModel}"`)
    })
  })

  const explain = (status: number) =>
    vendor.explain({ status, retryAfterSeconds: 7, body: '{"error":{"message":"x"}}' }, secrets)

  test.each(fixture.refusals.map((refusal) => [refusal.status, refusal] as const))(
    'a %d is explained with its kind and whether to retry',
    (status, { body, kind, retryable }) => {
      const text = JSON.stringify(body)
      const verdict = vendor.explain({ status, retryAfterSeconds: undefined, body: text }, secrets)
      expect({ kind: verdict.error.kind, retryable: verdict.retryable }).toEqual({ kind, retryable })
      if (kind === 'upstream-rejected') expect(verdict.error.details.refusal?.body).toBe(text)
    },
  )

  test.each([405, 407, 421, 425, 426, 499])(
    'a %d is about the way to the vendor, and not about the request',
    (status) => {
      expect(explain(status)).toMatchObject({ error: { kind: 'upstream-failed' }, retryable: true })
      expect(explain(status).restCredentialSeconds).toBeUndefined()
    },
  )

  test("no refusal contains our key or the vendor's address", () => {
    for (const status of [400, 401, 403, 404, 409, 422, 429, 500]) {
      const message = `key ${secrets.credential} at ${secrets.baseUrl} is bad`
      const body = JSON.stringify({ error: { message, type: 'x', param: null, code: null } })
      const { error } = vendor.explain({ status, retryAfterSeconds: undefined, body }, secrets)
      const said = JSON.stringify({ message: error.message, refusal: error.details.refusal })
      expect(said).not.toContain(secrets.credential)
      expect(said).not.toContain('vendor.example')
    }
  })

  test('a refused key rests, and a refused request does not rest it', () => {
    expect(explain(401).restCredentialSeconds).toBeGreaterThan(0)
    expect(explain(429).restCredentialSeconds).toBe(7)
    expect(explain(400).restCredentialSeconds).toBeUndefined()
    expect(explain(500).restCredentialSeconds).toBeUndefined()
  })
})
