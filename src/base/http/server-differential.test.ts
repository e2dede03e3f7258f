import { afterAll, beforeAll, expect, test } from 'bun:test'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { METHODS } from 'node:http'
import { createInterface } from 'node:readline'
import fc from 'fast-check'
import { closeAll, listen, openClient, until, type Client } from '../../../test/support/http-server.ts'
import { Reply } from './reply.ts'

// The runtime's `node:http` is not Node's, whose parser is the one that most of the web has met.
const node = Bun.which('node')
const nodeServer = `
const server = require('node:http').createServer({ keepAliveTimeout: 60_000, requireHostHeader: false }, (request, response) => {
  const pieces = []
  request.on('data', (piece) => pieces.push(piece))
  request.on('end', () => {
    const values = request.rawHeaders.filter((_, i) => i % 2 === 1)
    const names = request.rawHeaders.filter((_, i) => i % 2 === 0)
    const headers = names.map((name, i) => [name, values[i]])
    const body = Buffer.concat(pieces).toString('hex')
    response.end(JSON.stringify({ method: request.method, target: request.url, headers, body }) + '\\n')
  })
})
server.on('connect', (request, socket) => socket.end('HTTP/1.1 200 OK\\r\\n\\r\\n{"method":"CONNECT"}\\n'))
server.on('checkContinue', (request, response) => {
  response.writeContinue()
  server.emit('request', request, response)
})
server.on('checkExpectation', (request, response) => server.emit('request', request, response))
// Otherwise an error would also swallow the answers to the requests before it.
server.on('clientError', (_error, socket) => setTimeout(() => socket.end('HTTP/1.1 400 Bad Request\\r\\n\\r\\n'), 5))
server.listen(0, '127.0.0.1', () => console.log(server.address().port))
`

let child: ChildProcess
let theirs: number
let ours: number
beforeAll(async () => {
  ours = listen({
    async answer(request) {
      const body = Buffer.from(await request.bytes()).toString('hex')
      const target = request.url.slice(`http://${request.headers.get('host') ?? ''}`.length)
      const told = { method: request.method, target, headers: [...request.headers], body }
      return new Reply(200, {}, Buffer.from(`${JSON.stringify(told)}\n`))
    },
  }).port
  if (node === null) return
  child = spawn(node, ['-e', nodeServer], { stdio: ['ignore', 'pipe', 'inherit'] })
  if (child.stdout === null) throw new Error('no output')
  const [line] = await once(createInterface(child.stdout), 'line')
  theirs = Number(line)
})
afterAll(async () => {
  child?.kill()
  await closeAll()
})

type Told = { method: string; target: string; headers: [name: string, value: string][]; body: string }

const toldBy = ({ text }: Client): Told[] =>
  [...text().matchAll(/^(?:[0-9a-f]+\r\n)?(\{.*\})$/gm)].map(([, json]) => JSON.parse(json ?? ''))

/** A server has read what was sent to it before, once it has answered this many requests of another client. */
const rounds = 4

async function visit(port: number, sent: Uint8Array): Promise<Client> {
  const client = openClient(port)
  client.socket.setNoDelay(true)
  await once(client.socket, 'connect')
  await new Promise<void>((resolve) => client.socket.write(sent, () => resolve()))
  const pilot = openClient(port)
  for (let round = 1; round <= rounds && !client.isClosed(); round++) {
    pilot.socket.write('GET / HTTP/1.1\r\nhost: pilot\r\n\r\n')
    await until(() => toldBy(pilot).length >= round)
  }
  pilot.socket.destroy()
  return client
}

/** What we refuse though Node answers it. */
const refused: Record<string, RegExp> = {
  'a target that is no path': /[A-Z-]+ +[^/ ]/,
  'a first line without a version': /[A-Z-]+ +[^ \r\n]*\r?\n/,
  'two spaces in a first line': /[A-Z-]+ (?: |[^ \r\n]+ {2})/,
  'chunks in HTTP/1.0': /HTTP\/1\.0\r\n(?:[^\r]+\r\n)*transfer-encoding:/i,
  'another encoding than chunks, or beside them':
    /transfer-encoding:(?! ?chunked\r\n(?!(?:.+\r\n)*transfer-encoding))/i,
  'an empty line that is no CR LF': /^(?:\r\n)*(?:\r(?!\n)|\n)|\r\n(?:\r(?!\n)|\n)/,
}

/** What Node refuses though we answer it: none of it moves the end of a request. */
const taken: Record<string, RegExp> = {
  'a tab after a length or an encoding': /(?:content-length|transfer-encoding): ?(?:\d+|chunked) *\t/i,
  // What follows a chunk's size up to the end of its line is skipped, whatever it says, and so are the trailers.
  'an odd extension': /^[0-9a-f]+(?:[ \t]|;(?!(?:a=b|a="b c")\r\n))/im,
  'framing as a trailer': /\r\n0\r\n(?:content-length|transfer-encoding):/i,
}

const ruleOf = (rules: Record<string, RegExp>, text: string) =>
  Object.entries(rules).find(([, rule]) => rule.test(text))?.[0]

async function compare(sent: Uint8Array): Promise<string> {
  const [their, our] = await Promise.all([visit(theirs, sent), visit(ours, sent)])
  const text = Buffer.from(sent).toString('latin1')
  const isSettled = () => {
    const more = toldBy(our).length - toldBy(their).length
    return more === 0 || (more > 0 ? their : our).isClosed()
  }
  await until(isSettled, 500).catch(() => {})
  const [wanted, got] = [toldBy(their), toldBy(our)]
  their.socket.destroy()
  our.socket.destroy()
  const both = Math.min(wanted.length, got.length)
  expect({ text, got: got.slice(0, both) }).toEqual({ text, got: wanted.slice(0, both) })
  // Routes refuse methods that they do not know; Node's parser does.
  if (!METHODS.includes(got[wanted.length]?.method ?? 'GET')) return 'an unknown method'
  const takenRule = got.length > wanted.length ? ruleOf(taken, text) : undefined
  if (takenRule !== undefined) return takenRule
  expect({ text, more: got.slice(wanted.length) }).toEqual({ text, more: [] })
  if (got.length === wanted.length) return 'alike'
  const rule = ruleOf(refused, text)
  expect({ text, rule, statuses: our.statuses(), wanted: wanted.length }).toMatchObject({ rule: expect.any(String) })
  return rule ?? ''
}

const token = fc.constantFrom('x', 'X-Long-Name', 'host', 'accept', 'a!#$%&*+.^_`|~0')
const value = fc.string({
  unit: fc.constantFrom(' ', '\t', 'a', 'Z', '"', ':', ';', ',', '0', '\x80', '\xff'),
  maxLength: 8,
})
const body = fc.string({ unit: fc.constantFrom('a', '0', '\r', '\n', 'G', 'E', 'T', ' ', '/'), maxLength: 24 })
const framing = fc.oneof(
  body.map((text) => ({ lines: [`Content-Length: ${text.length}`], text })),
  fc
    .tuple(fc.array(body.filter(Boolean), { maxLength: 3 }), fc.constantFrom('', ';a=b', ';a="b c"'))
    .map(([chunks, extension]) => ({
      lines: ['Transfer-Encoding: chunked'],
      text: `${chunks.map((chunk) => `${chunk.length.toString(16)}${extension}\r\n${chunk}\r\n`).join('')}0\r\n\r\n`,
    })),
  fc.constant({ lines: [], text: '' }),
)
const request = fc
  .record({
    method: fc.constantFrom('GET', 'POST', 'PUT', 'DELETE', 'OPTIONS', 'PATCH'),
    target: fc.constantFrom('/', '/a?b=c', '//x', '/%00', '/a#b', '/v1/../x', '/;,"', '/~!$&()*+=@:'),
    version: fc.constantFrom('1.1', '1.1', '1.1', '1.0'),
    headers: fc.array(fc.tuple(token, value), { maxLength: 3 }),
    framing,
    isFramedFirst: fc.boolean(),
  })
  .map(({ method, target, version, headers, framing: { lines, text }, isFramedFirst }) => {
    const others = headers.map(([name, content]) => `${name}: ${content}`)
    const all = isFramedFirst ? [...lines, ...others] : [...others, ...lines]
    return `${[`${method} ${target} HTTP/${version}`, 'Host: h', ...all].join('\r\n')}\r\n\r\n${text}`
  })

// What attacks are made of.
const inserted = [
  '\r',
  '\n',
  '\r\n',
  ' ',
  '\t',
  '\0',
  ':',
  ';',
  ',',
  '0',
  '1',
  'a',
  '\x80',
  '\x7f',
  '\r\n ',
  '\r\n\t',
  '\n\n',
  '\r\n\r\n',
  'Content-Length: 3\r\n',
  '\r\nContent-Length: 5',
  'Content-Length: 0\r\n',
  'Transfer-Encoding: chunked\r\n',

  '\r\nTransfer-Encoding: identity',
  '\r\nTransfer-Encoding:\x0bchunked',
  ', chunked',
  'chunked, ',
  'Expect: 100-continue\r\n',
  'Connection: close\r\n',
  '\r\nConnection: keep-alive',
  '0\r\n\r\n',
  '5\r\nGET /',
  '+',
  '-',
  '0x',
  'HTTP/1.1',
  '_',
  'http://h/',
  '*',
  'CONNECT ',
]
const mutation = fc.record({ at: fc.nat(400), removed: fc.nat(3), inserted: fc.constantFrom('', ...inserted) })

const sent = fc
  .record({
    requests: fc.array(request, { minLength: 1, maxLength: 3 }),
    mutations: fc.array(mutation, { maxLength: 3 }),
  })
  .map(({ requests, mutations }) => {
    let text = requests.join('')
    for (const { at, removed, inserted } of mutations) {
      const place = at % (text.length + 1)
      text = text.slice(0, place) + inserted + text.slice(place + removed)
    }
    return Buffer.from(text, 'latin1')
  })

const runs = 1_000
const atOnce = 8

test.skipIf(node === null)(
  'what Node takes for requests is taken for the same ones, or refused by a rule; and nothing else is',
  async () => {
    const waiting = fc.sample(sent, { numRuns: runs, seed: 20_260_701 })
    const seen: Record<string, number> = {}
    const work = async () => {
      for (let bytes = waiting.pop(); bytes !== undefined; bytes = waiting.pop()) {
        const how = await compare(bytes)
        seen[how] = (seen[how] ?? 0) + 1
      }
    }
    await Promise.all(Array.from({ length: atOnce }, work))
    expect(seen['alike']).toBeGreaterThan(runs / 2)
  },
  60_000,
)
