import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JsonObject } from '../base/json.ts'
import type { EmbeddingInput, EmbeddingsAsk } from '../capabilities/embeddings.ts'
import { vendors } from './index.ts'
import { plainContext } from './testing.ts'
import type { VendorResponse, Step } from './vendor.ts'

/** What a vendor was sent for two texts, and answered. */
type Fixture = {
  readonly upstreamModel: string
  readonly sent: { readonly path: string; readonly headers: Record<string, string>; readonly body: JsonObject }
  readonly answer: JsonObject
  readonly vectors: number[][]
  readonly tokens: number
  readonly refusals: readonly { readonly status: number; readonly body: JsonObject; readonly message: string }[]
}

const folder = import.meta.dir

/** The fixture beside the vendor's adapter; without one, the common protocol's. */
function fixtureOf(vendor: string): Fixture | undefined {
  const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  const paths = [vendor, 'compatible'].flatMap((id) =>
    folders.map(({ name }) => join(folder, name, 'fixtures/embeddings', `${id}.json`)),
  )
  const file = paths.find((path) => existsSync(path))
  return file === undefined ? undefined : (JSON.parse(readFileSync(file, 'utf8')) as Fixture)
}

const secrets = { baseUrl: 'https://vendor.example/base', credential: 'vk-0123456789abcdef' }
const limits = { dimensions: [2, 4], dimensionsDefault: 4, inputTokensMax: 100, batchMax: 2 }

function askFor(inputs: readonly EmbeddingInput[]): EmbeddingsAsk {
  const facts = { capability: 'embeddings', model: 'ours', stream: false, bound: {}, limits, extras: {} } as const
  return { ...facts, inputs, encoding: 'base64', dimensions: 2, user: 'u' }
}

const respond = (body: unknown): VendorResponse => ({ header: () => null, body: Buffer.from(JSON.stringify(body)) })

function calling<Answer>(step: Step<Answer> | undefined) {
  if (step?.kind !== 'calls') throw new Error('nothing was asked for')
  return step
}

/** Takes each response as it arrives, and gives the step that follows from all of them. */
function answerOf<Answer>(step: ReturnType<typeof calling<Answer>>, ...bodies: unknown[]): Step<Answer> {
  const responses = bodies.map(respond)
  responses.forEach((response, index) => step.take?.(response, index))
  return step.next(responses.map((response) => ({ ...response, body: new Uint8Array() })))
}

const noAnswer = { kind: 'failed', error: { message: "The model's vendor sent no answer that can be read." } }

const embedding = [...vendors].flatMap(([id, vendor]) =>
  vendor.embeddings === undefined ? [] : [[id, vendor, vendor.embeddings] as const],
)

test('the expected vendors offer embeddings', () => {
  const ids = embedding.map(([id]) => id)
  expect(ids).toEqual(expect.arrayContaining(['openai', 'dashscope', 'google', 'voyage', 'cohere', 'ark', 'mistral']))
})

describe.each(embedding)('the embeddings adapter of %s', (id, vendor, adapter) => {
  const fixture = fixtureOf(id)
  if (fixture === undefined) throw new Error(`${id} has no fixture`)
  const context = { ...plainContext, ...secrets, upstreamModel: fixture.upstreamModel }
  const start = (...inputs: EmbeddingInput[]) => calling(adapter.start(askFor(inputs), context))

  test("the request is written in the vendor's own form, with the key in one header", () => {
    const { calls } = start('Hello', 'again')
    expect(calls).toHaveLength(1)
    const [call] = calls
    if (call?.transport !== 'vendor') throw new Error('not a call to the vendor')
    expect(call.url).toBe(secrets.baseUrl + fixture.sent.path)
    expect(JSON.parse(call.body as string)).toEqual(fixture.sent.body)
    expect(call.headers).toEqual({
      ...fixture.sent.headers,
      'content-type': 'application/json',
      'x-client-request-id': 'att_1',
    })
  })

  test('the vectors come in the order of the inputs, with their token count', () => {
    const answered = answerOf(start('Hello', 'again'), fixture.answer)
    if (answered.kind !== 'answered') throw new Error('no answer')
    expect(answered.answer.vectors.map((vector) => [...vector])).toEqual(fixture.vectors)
    expect(answered.answer.inputTokens).toBe(fixture.tokens)
    expect(answered.used).toEqual([{ usage: { input: fixture.tokens }, basis: 'vendor' }])
  })

  test('more inputs than the vendor accepts are split into calls and joined again', () => {
    const step = start('Hello', 'again', 'Hello', 'again')
    expect(step.calls).toHaveLength(2)
    const answered = answerOf(step, fixture.answer, fixture.answer)
    if (answered.kind !== 'answered') throw new Error('no answer')
    expect(answered.answer.vectors.map((vector) => [...vector])).toEqual([...fixture.vectors, ...fixture.vectors])
    expect(answered.answer.inputTokens).toBe(2 * fixture.tokens)
    expect(answered.used).toHaveLength(2)
  })

  test('missing usage is estimated and marked as estimated', () => {
    const { usage: _, usageMetadata: __, meta: ___, ...silent } = fixture.answer
    const step = start('Hello', 'again')
    expect(step.take?.(respond(silent), 0)).toMatchObject({ basis: 'estimated' })
    expect(step.next([])).toMatchObject({ used: [{ usage: { input: 2 }, basis: 'estimated' }] })
  })

  test('an estimate counts no more of a text than the model reads', () => {
    const { usage: _, usageMetadata: __, meta: ___, ...silent } = fixture.answer
    const used = start('word '.repeat(1_000), 'again').take?.(respond(silent), 0)
    expect(used).toEqual({ usage: { input: limits.inputTokensMax + 1 }, basis: 'estimated' })
  })

  test.each([[{}], [null], ['<html>'], [{ error: { message: 'x' } }]])('%j is not an answer', (body) => {
    expect(answerOf(start('Hello', 'again'), body)).toMatchObject(noAnswer)
  })

  test('too few vectors are not an answer', () => {
    expect(answerOf(start('Hello'), {})).toMatchObject(noAnswer)
    const step = start('Hello', 'again', 'and again')
    // What the successful calls used is still counted.
    const used = { usage: { input: fixture.tokens } }
    expect(answerOf(step, fixture.answer, fixture.answer)).toMatchObject({ ...noAnswer, used: [used, used] })
  })

  test('tokens are sent to OpenAI and Azure and refused for other vendors', () => {
    if (id === 'openai' || id === 'azure') expect(start([1, 2, 3]).calls).toHaveLength(1)
    else expect(() => start([1, 2, 3])).toThrow('This model takes text, not tokens.')
  })

  test.each(fixture.refusals)("a $status is explained in the vendor's own words", ({ status, body, message }) => {
    const verdict = vendor.explain({ status, retryAfterSeconds: undefined, body: JSON.stringify(body) }, secrets)
    expect(verdict).toMatchObject({ error: { kind: 'upstream-rejected', message }, retryable: false })
    expect(verdict.error.details.refusal?.status).toBe(status)
  })

  test("no error contains our key or the vendor's address", () => {
    const said = `key ${secrets.credential} at ${secrets.baseUrl} is bad`
    for (const body of [{ error: { message: said } }, { message: said }, { detail: said }]) {
      for (const status of [400, 401, 403, 404, 429, 500]) {
        const { error } = vendor.explain({ status, retryAfterSeconds: undefined, body: JSON.stringify(body) }, secrets)
        expect(JSON.stringify([error.message, error.details.refusal])).not.toMatch(/vk-0123|vendor\.example/)
      }
    }
  })
})

test.each<[string, unknown[]]>([
  ['an unreadable vector', [[0, 1], 'x']],
  ['an unreadable vector beside one too many', [[0, 1], 'x', [1, 0]]],
  [
    'a vector too many',
    [
      [0, 1],
      [1, 0],
      [1, 0],
    ],
  ],
  ['a vector that is too short', [[0, 1], [1]]],
])('vectors that do not match the inputs are not an answer: %s', (_name, embeddings) => {
  const { user: _user, ...ask } = askFor(['Hello', 'again'])
  const context = { ...plainContext, ...secrets, upstreamModel: 'm' }
  const step = calling(vendors.get('mistral')?.embeddings?.start(ask, context))
  const data = embeddings.map((embedding, index) => ({ object: 'embedding', index, embedding }))
  expect(answerOf(step, { data, usage: { prompt_tokens: 2, total_tokens: 2 } })).toMatchObject(noAnswer)
})

test("a single text is sent to Google's embedContent", () => {
  const context = { ...plainContext, ...secrets, upstreamModel: 'm' }
  const step = calling(vendors.get('google')?.embeddings?.start(askFor(['Hello']), context))
  expect(step.calls).toMatchObject([{ url: `${secrets.baseUrl}/v1beta/models/m:embedContent` }])
  const vectors = [Float32Array.from([0, 1])]
  expect(answerOf(step, { embedding: { values: [0, 2] } })).toMatchObject({ answer: { vectors } })
})

test('labels by which a vendor groups requests are made distinct from those of other accounts', () => {
  const labelled = { ...askFor(['Hello']), user: 'u', extras: { safety_identifier: 's', other: 'o' } }
  const { calls } = calling(vendors.get('openai')?.embeddings?.start(labelled, { ...plainContext, ...secrets }))
  const [call] = calls
  const body = call !== undefined && 'body' in call && typeof call.body === 'string' ? JSON.parse(call.body) : {}
  expect(body).toMatchObject({ user: 'mine/u', safety_identifier: 'mine/s', other: 'o' })
})
