import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { crc32 } from 'node:zlib'
import { drawImage } from '../../src/sandbox/files/image.ts'
import { isTold, startOwnGatewayOnSimulators, type OwnGateway } from '../support/own-gateway.ts'
import { says } from '../support/streams.ts'

// Bodies and forms that are made to keep the loop busy (B-03, B-04, B-11, O-09). The gateway has a process of its own,
// and what is measured is the processor's time of its main thread between two turns of the loop: neither the simulators
// nor other programs on this machine are in it. The time of the disk is not in it either; none of these gets that far.

const stallMsMax = 100
const slowMs = 600_000

let gateway: OwnGateway

const path = '/v1/chat/completions'
const boundary = 'the-boundary'

beforeAll(async () => {
  if (!isTold) return
  gateway = await startOwnGatewayOnSimulators()
  for (let round = 0; round < 10; round++) {
    await (await gateway.post(path, says('Hello!'))).text()
    await (await gateway.post(path, says('word '.repeat(200_000)))).text()
    await (await upload(boundary, form(boundary, Buffer.alloc(1_000_000)))).text()
  }
}, slowMs)
afterAll(() => gateway?.close())

const edits = '/v1/images/edits'
const upload = (mark: string, body: Uint8Array) =>
  gateway.post(edits, body, { 'content-type': `multipart/form-data; boundary=${mark}` })

const field = (mark: string, name: string, value: string, head = '') =>
  `--${mark}\r\nContent-Disposition: form-data; name="${name}"${head}\r\n\r\n${value}\r\n`
const fields = (mark: string) => field(mark, 'model', 'gpt-image-2') + field(mark, 'prompt', 'a hat')

/** A whole form with one file in it, which is not an image. */
function form(mark: string, file: Uint8Array): Buffer {
  const head = `; filename="a.png"\r\nContent-Type: image/png`
  const [before = '', after = ''] = field(mark, 'image', '\0', head).split('\0')
  return Buffer.concat([Buffer.from(fields(mark) + before), file, Buffer.from(`${after}--${mark}--\r\n`)])
}

const drawn = (format: 'png' | 'jpeg') => drawImage({ width: 64, height: 64, format, seed: 1 })
const pictured = (file: Uint8Array) => form(boundary, file).toString('latin1')

/** The status of a refusal, what is wrong, and where. */
const refusedBy = (send: () => Promise<Response>) => async () => {
  const response = await send()
  const { error } = (await response.json()) as { error: { code: string; param: string | null } }
  return { status: response.status, code: error.code, param: error.param }
}

/** A refusal, and how long it kept the loop busy in one go. */
async function refusal(send: () => Promise<Response>) {
  const { result: told, stallMs } = await gateway.stallOf(refusedBy(send), stallMsMax)
  return { ...told, stallMs }
}

/** A refusal, and all the processor time that it took. */
async function toil(send: () => Promise<Response>, goodMs: number) {
  const { result: told, workMs } = await gateway.workOf(refusedBy(send), goodMs)
  return { ...told, workMs }
}

/** The same for an ordinary request that others are compared with. */
async function ordinaryToil(send: () => Promise<Response>) {
  const { result: told, workMs } = await gateway.ordinaryWorkOf(refusedBy(send))
  return { ...told, workMs }
}

const keys = (count: number) => Array.from({ length: count }, (_, at) => `"k${at}":0`).join(',')

const times = (text: string, count: number) => Array.from({ length: count }, () => text).join(',')
const content = (items: string) => `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[${items}]}]}`
const result = '{"type":"tool_result","tool_use_id":"a","content":[{}]}'

describe.skipIf(!isTold)('a hostile body', () => {
  test.each([
    ['a million keys', () => `{${keys(1_000_000)}}`, 'too_many_keys'],
    ['a million keys, a level deeper', () => `{"odd":{${keys(1_000_000)}}}`, 'too_many_keys'],
    ['a million objects', () => `{"odd":[${'{"a":0},'.repeat(1_000_000)}0]}`, 'too_many_keys'],
    ['one key a million times', () => `{${'"a":0,'.repeat(1_000_000)}"a":0}`, 'too_many_keys'],
    ['a million brackets', () => '['.repeat(1_000_000), 'body_too_deep'],
    ['a million brackets after a key', () => `{"a":${'['.repeat(1_000_000)}`, 'body_too_deep'],
    ['deeply nested objects', () => '{"a":'.repeat(200_000), 'body_too_deep'],
    ['sixteen million numbers', () => `{"odd":[${'0,'.repeat(16_000_000)}0]}`, 'too_many_items'],
    ['four million empty lists', () => `{"odd":[${'[],'.repeat(4_000_000)}0]}`, 'too_many_items'],
    ['two million texts', () => `{"odd":[${'"a",'.repeat(2_000_000)}0]}`, 'too_many_items'],
    ['a number of a million digits', () => `{"odd":${'1'.repeat(1_000_000)}}`, 'number_too_long'],
    ['brackets that close before they open', () => ']'.repeat(4_000_000) + '['.repeat(4_000_000), 'invalid_json'],
    ['an endless string of backslashes', () => `{"a":"${'\\'.repeat(1_000_001)}`, 'invalid_json'],
    ['eight million line ends before the mistake', () => `${'\n'.repeat(8_000_000)}x`, 'invalid_json'],
    ['a megabyte of quotes', () => `{"a":${'"'.repeat(1_000_001)}`, 'invalid_json'],
  ])(
    'a body of %s is refused without stalling the loop',
    async (_name, made, code) => {
      const body = made()
      const refused = await refusal(() => gateway.post(path, body))
      expect(refused).toMatchObject({ status: 400, code })
      expect(refused.stallMs).toBeLessThan(stallMsMax)
    },
    slowMs,
  )

  // Numbers that a double does not hold make the parser hand over the text of each one: ten times the work.
  test(
    'a million numbers are read, unless one of them has too many digits for a double',
    async () => {
      const input = '1,'.repeat(1_200_000)
      const ask = (last: string) =>
        gateway.post('/v1/embeddings', `{"model":"no-such-model","input":[${input}${last}]}`)
      expect(await refusal(() => ask('1'))).toMatchObject({ status: 404 })
      const refused = await refusal(() => ask('12345678901234567890'))
      expect(refused).toMatchObject({ status: 400, code: 'too_many_items' })
      expect(refused.stallMs).toBeLessThan(stallMsMax)
    },
    slowMs,
  )

  // The first of them is invalid already; a schema would report each of the others as well.
  test(
    'a million invalid tokens are refused at the first, in about the time that reading them takes',
    async () => {
      const input = `[${times(`[${times('-1', 2_000)}]`, 500)}]`
      const ask = (model: string) => gateway.post('/v1/embeddings', `{"model":"${model}","input":${input}}`)
      const unread = await ordinaryToil(() => ask('no-such-model'))
      const boundMs = 4 * unread.workMs
      const refused = await toil(() => ask('text-embedding-3-small'), boundMs)
      expect(unread.status).toBe(404)
      expect(refused).toMatchObject({ status: 400, param: 'input[0][0]' })
      expect(refused.workMs).toBeLessThan(boundMs)
    },
    slowMs,
  )

  test.each([
    ['messages that are not objects', path, `{"model":"m","messages":[${times('0', 99_000)}]}`],
    ['empty parts', path, content(times('{}', 99_000))],
    ['empty tools', path, `{"model":"m","messages":[{"role":"user","content":"Hi"}],"tools":[${times('{}', 99_000)}]}`],
    ['items that are not objects', '/v1/responses', `{"model":"m","input":[${times('0', 99_000)}]}`],
    ['empty items', '/v1/responses', `{"model":"m","input":[${times('{}', 99_000)}]}`],
    ['empty parts', '/v1/responses', `{"model":"m","input":[{"role":"user","content":[${times('{}', 99_000)}]}]}`],
    [
      'messages that are not objects',
      '/v1/messages',
      `{"model":"m","max_tokens":1,"messages":[${times('0', 99_000)}]}`,
    ],
    ['empty blocks', '/v1/messages', content(times('{}', 99_000))],
    ['empty blocks inside blocks', '/v1/messages', content(times(result, 33_000))],
    [
      'empty blocks after valid ones',
      '/v1/messages',
      content(`${times('{"type":"odd"}', 3_000)},${times('{}', 90_000)}`),
    ],
  ])(
    'a hundred thousand %s are refused by %s without stalling the loop',
    async (_name, to, text) => {
      const body = text.replace('"m"', '"gpt-4o-mini"')
      const { result: status, stallMs } = await gateway.stallOf(async () => {
        const response = await gateway.post(to, body)
        expect(await response.text()).toMatch(/(messages|input|tools)\[/)
        return response.status
      }, stallMsMax)
      expect(status).toBe(400)
      expect(stallMs).toBeLessThan(stallMsMax)
    },
    slowMs,
  )

  // A parser that saw the keys before they were counted would take thirty times as long as for plain text.
  test(
    'a body of too many keys takes about as long as plain text of the same size',
    async () => {
      const many = `{${keys(1_000_000)}}`
      const plain = JSON.stringify(says('Hello! '.repeat(many.length / 7), { model: 'no-such-model' }))
      const harmless = await ordinaryToil(() => gateway.post(path, plain))
      const boundMs = 8 * harmless.workMs
      const refused = await toil(() => gateway.post(path, many), boundMs)
      expect([refused.status, harmless.status]).toEqual([400, 404])
      expect(refused.workMs).toBeLessThan(boundMs)
    },
    slowMs,
  )

  // As many as are accepted, and a sixteenth of that. Linear work takes sixteen times as long, quadratic work 256
  // times: the bound is far from both, on any machine.
  test.each([
    ['keys', (times: number) => `{"odd":{${keys(6_000 * times)}}}`],
    ['numbers with long digits', (times: number) => `{"odd":[${'12345678901234567890,'.repeat(6_000 * times)}0]}`],
    ['digits in each number', (times: number) => `{"odd":[${`${'1'.repeat(600 * times)},`.repeat(50)}0]}`],
    ['escapes', (times: number) => `{"odd":"${'\\u005f\\"'.repeat(50_000 * times)}"}`],
    ['short texts', (times: number) => `{"odd":[${'"a\\\\",'.repeat(6_000 * times)}0]}`],
  ])(
    'sixteen times as many %s do not cost quadratic work',
    async (_name, made) => {
      // No model is named, and so nothing follows once it has been read.
      const [few, many] = [made(1), made(16)]
      const small = await ordinaryToil(() => gateway.post(path, few))
      const boundMs = 64 * small.workMs
      const large = await toil(() => gateway.post(path, many), boundMs)
      expect([small.status, large.status]).toEqual([400, 400])
      expect([small.code, large.code]).toEqual(['missing_required_parameter', 'missing_required_parameter'])
      expect(large.workMs).toBeLessThan(boundMs)
    },
    slowMs,
  )
})

// B-11
describe.skipIf(!isTold)('a hostile form', () => {
  const end = `--${boundary}--\r\n`
  const good = fields(boundary)
  const nested = field(boundary, 'more', '', '\r\nContent-Type: multipart/mixed; boundary=inner')

  const plain = 'multipart/form-data'
  const parts = (count: number) => Array.from({ length: count }, (_, at) => field(boundary, `f${at}`, '')).join('')
  const megabyte = 'x'.repeat(1_000_000)
  // Of which a vendor would make thousands of tiles.
  const line = drawn('png')
  line.writeUInt32BE(16_777_216, 16)
  line.writeUInt32BE(1, 20)
  line.writeUInt32BE(crc32(line.subarray(12, 29)), 29)
  const segment = Buffer.concat([Buffer.from([0xff, 0xe2, 0xff, 0xff]), Buffer.alloc(65_533)])
  const longHead = Buffer.concat([
    Buffer.from([0xff, 0xd8]),
    ...Array.from({ length: 20 }, () => segment),
    drawn('jpeg'),
  ])

  const shapes: readonly { name: string; text: string; type?: string }[] = [
    { name: 'no boundary', text: good + end, type: plain },
    { name: 'a boundary that is too long', text: good + end, type: `${plain}; boundary=${'0123456789'.repeat(7)}x` },
    { name: 'ten thousand parts', text: parts(10_000) + end },
    { name: 'another form inside it', text: `${good}${nested}${end}` },
    { name: 'forms inside forms', text: `${good}${nested.repeat(40)}${end}` },
    { name: 'no last boundary', text: good },
    { name: 'no last boundary after a megabyte', text: good + field(boundary, 'user', megabyte) },
    { name: 'a megabyte of dashes after the boundary', text: `--${boundary}${'-'.repeat(1_000_000)}` },
    { name: 'a megabyte of dashes after its parts', text: `${good}--${boundary}\r\n${'-'.repeat(1_000_000)}` },
    { name: 'a megabyte of line ends after the boundary', text: `--${boundary}${'\r\n'.repeat(500_000)}` },
    { name: 'a part header of a megabyte', text: field(boundary, 'model', 'x', `\r\nX: ${megabyte}`) + end },
    { name: 'an endless part header', text: `--${boundary}\r\nX: ${megabyte}` },
    {
      name: 'a part header of 9 KiB',
      text: field(boundary, 'odd', 'x', `\r\nX: ${'x'.repeat(9 * 1024)}`) + good + end,
    },
    {
      name: 'a part header of more than a thousand lines',
      text: field(boundary, 'odd', 'x', '\r\na:b'.repeat(1_600)) + end,
    },
    { name: 'a field of a megabyte', text: good + field(boundary, 'user', megabyte) + end },
    { name: 'a field of 65 KiB', text: good + field(boundary, 'user', 'x'.repeat(65 * 1024)) + end },
    { name: 'a truncated image', text: pictured(drawn('png').subarray(0, -1)) },
    { name: 'an image of one line of pixels', text: pictured(line) },
    { name: 'an image whose size comes too late', text: pictured(longHead) },
  ]
  test.each(shapes)(
    'a form with $name is refused without stalling the loop',
    async ({ text, type = `${plain}; boundary=${boundary}` }) => {
      const body = Buffer.from(text, 'latin1')
      const refused = await refusal(() => gateway.post(edits, body, { 'content-type': type }))
      expect(refused.status).toBe(400)
      expect(refused.stallMs).toBeLessThan(stallMsMax)
    },
    slowMs,
  )

  const bytes = 8_000_000
  const filled = (pattern: string) => Buffer.alloc(bytes, pattern, 'latin1')

  /** Expects that a file made for its boundary takes at most `timesMax` times the work of any other. */
  async function takesAsLong(timesMax: number, mark: string, pattern: string): Promise<void> {
    const [hostile, harmless] = [form(mark, filled(pattern)), form(boundary, filled('a'))]
    const ordinary = await ordinaryToil(() => upload(boundary, harmless))
    const boundMs = timesMax * ordinary.workMs
    const refused = await toil(() => upload(mark, hostile), boundMs)
    expect([refused.status, refused.code]).toEqual([400, ordinary.code])
    expect(refused.workMs).toBeLessThan(boundMs)
    expect((await refusal(() => upload(mark, hostile))).stallMs).toBeLessThan(stallMsMax)
  }

  // Searched for from its end on, a boundary that repeats itself takes as many steps a byte as it is long.
  test.each([
    ['one repeated letter', 'a'.repeat(70), 'a'],
    ['two alternating letters', 'ab'.repeat(35), 'ba'],
    ['dashes', '-'.repeat(40), '-'],
  ])(
    'a boundary of %s is refused and not searched for',
    async (_name, mark, pattern) => {
      const refused = await refusal(() => upload(mark, form(mark, filled(pattern))))
      expect(refused).toMatchObject({ status: 400, code: 'invalid_multipart' })
      expect(refused.stallMs).toBeLessThan(stallMsMax)
    },
    slowMs,
  )

  test.each([
    ['one letter', `the-boundary-${'a'.repeat(10)}`, 'a'],
    ['two letters', `the-boundary-${'ab'.repeat(10)}`, 'ba'],
  ])(
    'a boundary with the longest accepted run of %s takes about as long as any other',
    async (_name, mark, pattern) => {
      await takesAsLong(10, mark, pattern)
    },
    slowMs,
  )

  test.each([
    ['all but the last letter of the boundary', `\r\n--${boundary.slice(0, -1)}`],
    ['the boundary without its line', `--${boundary}`],
    ['line ends', '\r\n'],
    ['dashes', '-'],
  ])(
    'a file of %s takes about as long as any other',
    async (_name, pattern) => {
      await takesAsLong(5, boundary, pattern)
    },
    slowMs,
  )
})

async function statusOf(asked: Promise<Response>): Promise<number> {
  const response = await asked
  await response.text()
  return response.status
}

// O-09
test.skipIf(!isTold)(
  'other requests are served without a stall while all of these arrive at once',
  async () => {
    const keyed = `{${keys(1_000_000)}}`
    const deep = '['.repeat(1_000_000)
    const dashed = Buffer.from(`--${boundary}${'-'.repeat(1_000_000)}`)
    const long = says(`${'a'.repeat(1_000_000)}!`)
    const hostile = [
      () => gateway.post(path, keyed),
      () => gateway.post(path, deep),
      () => upload(boundary, dashed),
      () => gateway.post(path, long),
    ]
    const { result, stallMs } = await gateway.stallOf(async () => {
      const refused = hostile.map((send) => send())
      const served = Array.from({ length: 20 }, () => gateway.post(path, says('Hello!')))
      return { refused: await Promise.all(refused.map(statusOf)), served: await Promise.all(served.map(statusOf)) }
    }, stallMsMax)
    expect(new Set(result.refused)).toEqual(new Set([400]))
    expect(new Set(result.served)).toEqual(new Set([200]))
    expect(stallMs).toBeLessThan(stallMsMax)
  },
  slowMs,
)

// O-09: a count is free of charge, so nothing limits how often it is asked for. Reading eight megabytes takes a good
// part of the limit by itself, and more on a busy machine.
const longBodyStallMsMax = 2 * stallMsMax

test.skipIf(!isTold).each([
  ['one text', () => ({ messages: [{ role: 'user', content: '1 '.repeat(4_000_000) }] })],
  [
    'many texts',
    () => ({ messages: Array.from({ length: 8_000 }, () => ({ role: 'user', content: '1 '.repeat(500) })) }),
  ],
  ['a tool', () => ({ messages: [], tools: [{ name: 'f', input_schema: { description: '1 '.repeat(4_000_000) } }] })],
])(
  'eight megabytes in %s are counted without stopping everybody else',
  async (_name, made) => {
    const body = { model: 'gpt-4o-mini', ...made(), messages: [...made().messages, { role: 'user', content: 'Hi' }] }
    const { result, stallMs } = await gateway.stallOf(
      async () => (await gateway.post('/v1/messages/count_tokens', body)).json(),
      longBodyStallMsMax,
    )
    expect(result).toEqual({ input_tokens: 128_000 })
    expect(stallMs).toBeLessThan(longBodyStallMsMax)
  },
  slowMs,
)
