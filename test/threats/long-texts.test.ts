import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import contract from '../../src/http/openapi/openapi.json'
import { textFieldsOf, type Contract, type TextField } from '../support/contract-fields.ts'
import { isTold, startOwnGatewayOnSimulators, type OwnGateway } from '../support/own-gateway.ts'
import { says } from '../support/streams.ts'

// B-21, O-09: a megabyte of `a…a!` in every place of every request where a text may stand. The places are read from the
// contract, so that a new field is tried without a change here. As in `stalls.test.ts`, what is measured is
// what the gateway's own thread did between two turns of its loop, and the limit is the same.

const stallMsMax = 100
const slowMs = 600_000
const long = `${'a'.repeat(1_000_000)}!`
/** A refusal is short, and does not repeat the client's million characters. */
const refusalBytesMax = 8_000

let gateway: OwnGateway

beforeAll(async () => {
  if (!isTold) return
  gateway = await startOwnGatewayOnSimulators()
}, slowMs)
afterAll(() => gateway?.close())

/** Expects an answer or a short refusal without a stall; gives the status. */
async function answered(path: string, at: string, send: () => Promise<Response>): Promise<number> {
  const { result, stallMs } = await gateway.stallOf(async () => {
    const response = await send()
    return { status: response.status, bytes: (await response.bytes()).length }
  }, stallMsMax)
  const { status, bytes } = result
  expect({ path, at, isShort: status === 200 || bytes < refusalBytesMax }).toEqual({ path, at, isShort: true })
  expect([200, 202, 400, 404]).toContain(status)
  expect({ path, at, isQuick: stallMs < stallMsMax || stallMs }).toEqual({ path, at, isQuick: true })
  return status
}

type Body = Record<string, unknown>

/** The smallest body with this field, for a model that exists. */
function bodyWith({ at, put }: TextField, text: string, base: Body): Body {
  const [, name = ''] = /^\.(\w+)/.exec(at) ?? []
  const least = put(text) as Body
  return { ...least, ...base, [name]: least[name] }
}

/** Each way from the client's protocol to a vendor's: passed through, and translated. */
const ways: readonly (readonly [path: string, base: Body])[] = [
  ['/v1/chat/completions', { model: 'gpt-4o-mini' }],
  ['/v1/chat/completions', { model: 'claude-sonnet-4-5' }],
  ['/v1/chat/completions', { model: 'gemini-2.5-flash' }],
  ['/v1/responses', { model: 'gpt-4o-mini' }],
  ['/v1/responses', { model: 'claude-sonnet-4-5' }],
  ['/v1/messages', { model: 'claude-sonnet-4-5' }],
  ['/v1/messages', { model: 'gpt-4o-mini' }],
  ['/v1/messages/count_tokens', { model: 'claude-sonnet-4-5' }],
  ['/v1/embeddings', { model: 'text-embedding-3-small' }],
  ['/v1/embeddings', { model: 'gemini-embedding-001' }],
  ['/v1/audio/speech', { model: 'gpt-4o-mini-tts', voice: 'alloy' }],
  ['/v1/audio/speech', { model: 'gemini-2.5-flash-preview-tts', voice: 'Kore' }],
  ['/v1/images/generations', { model: 'gpt-image-2' }],
  ['/v1/images/generations', { model: 'qwen-image-2.0' }],
  ['/v1/images/generations', { model: 'gemini-2.5-flash-image' }],
  ['/v1/videos/generations', { model: 'wan2.6-t2v', input: { prompt: 'a fox' } }],
  ['/v1/videos/generations', { model: 'doubao-seedance-1-5-pro-251215', input: { prompt: 'a fox' } }],
]

const url = { url: long }
const chat = (more: Body) => ['/v1/chat/completions', says('Hi', more)] as const
const video = (model: string, more: Body) => ['/v1/videos/generations', { model, ...more }] as const
const seedance = (item: Body) =>
  video('doubao-seedance-1-5-pro-251215', { content: [{ type: 'text', text: 'a fox' }, item] })
const wan = (input: Body, parameters: Body = {}) =>
  video('wan2.6-i2v', { input: { prompt: 'a fox', img_url: 'https://example.com/a.png', ...input }, parameters })
const tool = (parameters: Body) => chat({ tools: [{ type: 'function', function: { name: 'f', parameters } }] })
const file = (part: Body) => chat({ messages: [{ role: 'user', content: [{ type: 'file', file: part }] }] })

describe.skipIf(!isTold)('a megabyte of text', () => {
  test.each(ways)(
    '%s, %o: a megabyte in each text field neither stalls the loop nor makes a long refusal',
    async (path, base) => {
      const fields = textFieldsOf(contract as unknown as Contract, path)
      expect(fields.length).toBeGreaterThan(4)
      const seen: number[] = []
      for (const field of fields) {
        // Once with a short text, so that what is loaded and compiled on first use is not measured.
        if (seen.length === 0) await (await gateway.post(path, bodyWith(field, 'x', base))).text()
        const body = JSON.stringify(bodyWith(field, long, base))
        seen.push(await answered(path, field.at, () => gateway.post(path, body)))
      }
      // At least one of them has to get further than the look-up of a model.
      expect(seen.filter((status) => status !== 404).length).toBeGreaterThan(0)
    },
    slowMs,
  )

  test('a megabyte in each field of a form neither stalls the loop nor makes a long refusal', async () => {
    const fields = textFieldsOf(contract as unknown as Contract, '/v1/images/edits')
    for (const { at } of fields) {
      const form = new FormData()
      for (const [name, value] of Object.entries({ model: 'gpt-image-2', prompt: 'a hat', [at.slice(1)]: long })) {
        form.append(name, value)
      }
      const encoded = new Response(form)
      const [type, body] = [encoded.headers.get('content-type') ?? '', await encoded.bytes()]
      await answered('/v1/images/edits', at, () => gateway.post('/v1/images/edits', body, { 'content-type': type }))
    }
    expect(fields.map(({ at }) => at)).toContain('.prompt')
  })

  // What the contract leaves open: objects whose fields depend on the model or the client.
  test.each([
    ['the name of an unknown field', chat({ [long]: 1 })],
    ['the value of an unknown field', chat({ odd: long })],
    ['a file', file({ file_data: long })],
    ['the id of a file', file({ file_id: long })],
    ['the name of a file', file({ file_data: 'data:application/pdf;base64,AAAA', filename: long })],
    ['an image in base64', chat({ messages: [{ role: 'user', content: [{ type: 'image_url', image_url: url }] }] })],
    ['the name of a tool’s property', tool({ type: 'object', properties: { [long]: { type: 'string' } } })],
    ['a pattern in a tool’s schema', tool({ type: 'object', properties: { a: { type: 'string', pattern: long } } })],
    ['a reference in a tool’s schema', tool({ type: 'object', $ref: `#/${long}` })],
    ['the prompt of a video', wan({ prompt: long })],
    ['the negative prompt of a video', wan({ negative_prompt: long })],
    ['the first frame of a video', wan({ img_url: long })],
    ['the audio of a video', wan({ audio_url: long })],
    ['the size of a video', wan({}, { size: long })],
    ['an unknown parameter', wan({}, { odd: long })],
    ['a text block of a video', seedance({ type: 'text', text: long })],
    ['an image block of a video', seedance({ type: 'image_url', image_url: url })],
    [
      'the role of an image of a video',
      seedance({ type: 'image_url', role: long, image_url: { url: 'https://example.com/a.png' } }),
    ],
    ['the draft of a video', seedance({ type: 'draft_task', draft_task: { id: long } })],
    [
      'one of two contradictory resolutions',
      video('wan2.6-t2v', { resolution: long, input: { prompt: 'a' }, parameters: { resolution: 'x' } }),
    ],
  ])(
    'a megabyte as %s neither stalls the loop nor makes a long refusal',
    async (name, [path, body]) => {
      const text = JSON.stringify(body)
      await answered(path, name, () => gateway.post(path, text))
    },
    slowMs,
  )
})
