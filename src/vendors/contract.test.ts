import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Kind } from '../base/errors.ts'
import type { AttemptId } from '../base/ids.ts'
import type { JsonObject } from '../base/json.ts'
import { EventSplitter } from '../base/sse.ts'
import type { ChatTraits } from '../capabilities/chat.ts'
import { openaiChat } from '../wire/openai/chat.ts'
import { vendors } from './index.ts'
import type { Vendor } from './vendor.ts'

/** What a vendor was sent and answered, as seen on its wire. */
type Fixture = {
  readonly upstreamModel: string
  readonly sent: { readonly path: string; readonly body: JsonObject }
  readonly answer: JsonObject
  /** Raw events, ugly ones too. */
  readonly stream: readonly string[]
  /** What both of them used. */
  readonly counts: Readonly<Record<string, number>>
  readonly text: string
  readonly refusals: readonly {
    readonly status: number
    readonly body: JsonObject
    readonly kind: Kind
    readonly retryable: boolean
  }[]
}

const folder = import.meta.dir

/** `<adapter>/fixtures/<vendor>.json`, beside whichever adapter it is. */
function fixtureOf(vendor: string): Fixture | undefined {
  const file = readdirSync(folder, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(folder, entry.name, 'fixtures', `${vendor}.json`))
    .find((path) => existsSync(path))
  return file === undefined ? undefined : (JSON.parse(readFileSync(file, 'utf8')) as Fixture)
}

const traits: ChatTraits = {
  id: 'ours',
  contextTokens: 100_000,
  outputTokensMax: 1_000,
  choicesMax: 1,
  reasoning: false,
  efforts: [],
  sells: () => true,
}
const secrets = { baseUrl: 'https://vendor.example/base', credential: 'vk-0123456789abcdef' }
const context = {
  ...secrets,
  reasoning: false,
  ref: 'att_1' as AttemptId,
  namespaced: (label: string) => `mine/${label}`,
}

function askFor(stream: boolean) {
  const body = { model: 'ours', messages: [{ role: 'user', content: 'Hi' }], max_tokens: 50, stream }
  return openaiChat.readAsk(body, 100, () => traits)
}

const adapters: readonly [string, Vendor][] = [...vendors]

test('every vendor has a fixture, and every fixture a vendor', () => {
  expect(adapters.filter(([id]) => fixtureOf(id) === undefined).map(([id]) => id)).toEqual([])
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.json'))
  const named = files.map((file) => file.replace(/^.*[/\\]|\.json$/g, ''))
  expect(named.filter((id) => !vendors.has(id))).toEqual([])
})

describe.each(adapters)('%s', (id, vendor) => {
  const fixture = fixtureOf(id)
  if (fixture === undefined) return

  test('is asked in its own words', () => {
    const call = vendor.chat?.start(askFor(true), { ...context, upstreamModel: fixture.upstreamModel })
    expect(call?.url).toBe(secrets.baseUrl + fixture.sent.path)
    expect(JSON.parse(call?.body ?? '')).toEqual(fixture.sent.body)
    expect(call?.headers).toEqual({
      authorization: `Bearer ${secrets.credential}`,
      'content-type': 'application/json',
      'x-client-request-id': 'att_1',
    })
  })

  const explain = (status: number) =>
    vendor.explain({ status, retryAfterSeconds: 7, body: '{"error":{"message":"x"}}' }, secrets)

  test('its key is in no part of a call but the one header', () => {
    const call = vendor.chat?.start(askFor(false), { ...context, upstreamModel: fixture.upstreamModel })
    expect(`${call?.url}${call?.body}`).not.toContain(secrets.credential)
  })

  test('its answer is read, counted, and named by our id', () => {
    const answer = openaiChat.readAnswer(askFor(false), Buffer.from(JSON.stringify(fixture.answer)))
    expect(answer.usage).toMatchObject(fixture.counts)
    const shown = JSON.parse(Buffer.from(answer.body).toString()) as JsonObject
    expect(shown).toEqual({ ...fixture.answer, model: 'ours' })
  })

  test('its stream comes to its end, is counted, and says what it says', () => {
    const stream = openaiChat.openStream(askFor(true))
    const splitter = new EventSplitter(1_000_000)
    let shown = ''
    // Byte by byte: where a vendor's packets end is chance.
    for (const byte of Buffer.from(fixture.stream.join(''))) {
      for (const event of splitter.push(Uint8Array.of(byte))) {
        const forwarded = stream.take(event)
        if (forwarded !== undefined) shown += Buffer.from(forwarded).toString()
      }
    }
    expect(splitter.rest).toBeUndefined()
    expect(stream.facts).toMatchObject({ ended: true, finished: true, failure: undefined })
    expect(stream.facts.usage).toMatchObject(fixture.counts)
    expect(stream.facts.outputEvents).toBeGreaterThan(0)
    const said = [...shown.matchAll(/"content":"([^"]*)"/g)].map(([, text]) => text).join('')
    expect(said).toBe(fixture.text)
    expect(shown).not.toContain('[DONE]')
  })

  test.each(fixture.refusals.map((refusal) => [refusal.status, refusal] as const))(
    'its %d is explained',
    (status, { body, kind, retryable }) => {
      const text = JSON.stringify(body)
      const verdict = vendor.explain({ status, retryAfterSeconds: undefined, body: text }, secrets)
      expect({ kind: verdict.error.kind, retryable: verdict.retryable }).toEqual({ kind, retryable })
      if (kind === 'upstream-rejected') expect(verdict.error.details.refusal?.body).toBe(text)
    },
  )

  test('no refusal names our key or its address', () => {
    for (const status of [400, 401, 403, 404, 409, 422, 429, 500]) {
      const message = `key ${secrets.credential} at ${secrets.baseUrl} is bad`
      const body = JSON.stringify({ error: { message, type: 'x', param: null, code: null } })
      const { error } = vendor.explain({ status, retryAfterSeconds: undefined, body }, secrets)
      const said = JSON.stringify({ message: error.message, refusal: error.details.refusal })
      expect(said).not.toContain(secrets.credential)
      expect(said).not.toContain('vendor.example')
    }
  })

  test('a refused key rests, a refused request does not tire it', () => {
    expect(explain(401).restCredentialSeconds).toBeGreaterThan(0)
    expect(explain(429).restCredentialSeconds).toBe(7)
    expect(explain(400).restCredentialSeconds).toBeUndefined()
    expect(explain(500).restCredentialSeconds).toBeUndefined()
  })
})
