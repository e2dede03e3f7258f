import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Socket } from 'node:net'
import { Random } from '../simulation/random.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { requestIdOf, rpc, sendRpc, type Result } from '../support/mcp.ts'
import { jsonPost, openSocket } from '../support/raw-socket.ts'
import { says } from '../support/streams.ts'

// C-05: five hundred clients at once over connections that are kept at both ends, of which three in ten hang up at any
// byte, and come again. This is what fits into seconds, from another seed in every run; THREAT_ROUNDS=300
// makes five minutes of it.

const clients = 500
const rounds = Number(process.env['THREAT_ROUNDS'] ?? 3)
const accounts = 10
const leaving = 0.3
/** About as long as the answers are. */
const bytesOf = { whole: 900, stream: 6_000 } as const

const seed = Number(process.env['SIMULATION_SEED'] ?? Math.floor(Math.random() * 2 ** 31))
let gateway: TestGateway
let keys: { id: string; key: string }[]

beforeAll(async () => {
  gateway = await startTestGateway({ engine: 'postgres', mode: 'leased' })
  keys = []
  for (let at = 0; at < accounts; at++) keys.push(await gateway.account({ dollars: '100' }))
}, 120_000)
afterAll(async () => {
  await gateway.assertBooks()
  await gateway.close()
}, 600_000)

type Heard = { readonly text: string; readonly whole: boolean }

/** Asks over a socket and listens to the end of the answer, or hangs up after so many bytes of it. */
function ask(socket: Socket, request: string, hangUpAt: number): Promise<Heard> {
  return new Promise((resolve) => {
    let text = ''
    const over = (whole: boolean) => {
      socket.removeAllListeners('data').removeAllListeners('close')
      if (!whole) socket.destroy()
      resolve({ text, whole })
    }
    socket.on('data', (bytes: Buffer) => {
      text += bytes.toString('latin1')
      if (text.length >= hangUpAt) over(false)
      else if (isWhole(text)) over(true)
    })
    socket.on('close', () => over(false))
    socket.write(request, () => {
      if (hangUpAt === 0) over(false)
    })
  })
}

function isWhole(text: string): boolean {
  const headEnd = text.indexOf('\r\n\r\n')
  if (headEnd === -1) return false
  const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, headEnd))?.[1]
  return length === undefined ? text.endsWith('\r\n0\r\n\r\n') : text.length === headEnd + 4 + Number(length)
}

test("C-05: no client gets any part of another client's answer while hundreds come and go", async () => {
  const random = new Random(seed)
  const foreign: string[] = []
  const owners = new Map<string, string>()
  let whole = 0
  let left = 0

  const client = async (index: number) => {
    const { id, key } = keys[index % accounts] ?? { id: '', key: '' }
    let socket: Socket | undefined
    for (let round = 0; round < rounds; round++) {
      const marker = `marker${index}r${round}x`
      const stream = random.chance(0.5)
      const hangUpAt = random.chance(leaving)
        ? random.between(0, bytesOf[stream ? 'stream' : 'whole'])
        : Number.POSITIVE_INFINITY
      const words = `Say ${marker} and again ${marker}${stream ? ' sandbox:pace=1 sandbox:tokens=24' : ''}`
      const request = jsonPost({ url: gateway.url, key }, says(words, { stream }))
      socket ??= (await openSocket(gateway.url)).on('error', () => {})
      const heard = await ask(socket, request, hangUpAt)
      const markers: readonly string[] = textOf(heard.text).match(/marker\d+r\d+x/g) ?? []
      if (markers.some((found) => found !== marker)) foreign.push(`${marker}: ${markers.join(' ')}`)
      if (!heard.whole) {
        left++
        socket = undefined
        continue
      }
      whole++
      expect({ seed, marker, status: heard.text.slice(0, 12) }).toEqual({ seed, marker, status: 'HTTP/1.1 200' })
      if (!markers.includes(marker)) foreign.push(`${marker}: nothing of its own`)
      owners.set(/x-request-id: (\S+)/i.exec(heard.text)?.[1] ?? '', id)
    }
    socket?.destroy()
  }
  await Promise.all(Array.from({ length: clients }, (_, index) => client(index)))

  expect({ seed, foreign }).toEqual({ seed, foreign: [] })
  expect(whole + left).toBe(clients * rounds)
  expect(left).toBeGreaterThan(clients * rounds * leaving * 0.7)
  expect(owners.size).toBe(whole)
  await areOnRecord(owners)
}, 1_200_000)

/** The text of an answer: the words of a stream are spread over many events. */
function textOf(answer: string): string {
  if (!answer.includes('text/event-stream')) return answer
  return [...answer.matchAll(/"content":"((?:[^"\\]|\\.)*)"/g)].map(([, content]) => content).join('')
}

/** Each request is recorded under the account that sent it. */
async function areOnRecord(owners: ReadonlyMap<string, string>): Promise<void> {
  await gateway.settleBooks()
  const records = await gateway.store.db.selectFrom('request').select(['id', 'account_id']).execute()
  const ours = records.filter(({ id }) => owners.has(id))
  expect(ours).toHaveLength(owners.size)
  expect(ours.filter(({ id, account_id: account }) => owners.get(id) !== account)).toEqual([])
}

const tool = (name: string, given: Record<string, unknown>) => rpc('tools/call', { name, arguments: given })

/** Requests whose answers show whose they are: by a word of the client's own, or as many numbers as it asked for. */
const marked = (marker: string, dimensions: number) => [
  { body: tool('chat', { model: 'gpt-4o-mini', prompt: `Say ${marker}` }), isCharged: true },
  { body: tool('chat', { model: marker, prompt: 'Hi' }), isCharged: false },
  { body: tool(marker, {}), isCharged: false },
  { body: rpc('prompts/get', { name: 'choose_model', arguments: { job: marker } }), isCharged: false },
  { body: tool('create_embeddings', { model: 'text-embedding-3-small', input: marker, dimensions }), isCharged: true },
]

type Embedded = { data: { embedding: number[] }[] }

/** One client's next call: whose it is on record, where it was charged. */
const askMarked = async (client: number, turn: number) => {
  const marker = `marker-${client}-${turn}-end`
  const dimensions = 1 + (client % 64)
  const kinds = marked(marker, dimensions)
  const { body, isCharged } = kinds[(client + turn) % kinds.length] ?? { body: rpc('ping'), isCharged: false }
  const { id: account, key } = keys[client % accounts] ?? { id: '', key: '' }
  const said = await sendRpc(gateway, key, body)
  const text = JSON.stringify(said.answer)
  const embedded = (said.answer['result'] as Result | undefined)?.structuredContent as Embedded | undefined
  expect({
    id: said.answer['id'],
    markers: [...new Set(text.match(/marker-\d+-\d+-end/g) ?? [])],
    numbers: embedded?.data?.[0]?.embedding.length,
  }).toEqual(
    body.params['name' as never] === 'create_embeddings'
      ? { id: 0, markers: [], numbers: dimensions }
      : { id: 0, markers: [marker], numbers: undefined },
  )
  if (!isCharged) return undefined
  const id = requestIdOf(said.answer['result'] as Result)
  expect(id).toBe(said.headers.get('x-request-id') ?? '')
  return { id, account }
}

test('X-04: two hundred tool clients with the same ids each get only their own answers', async () => {
  const toolClients = 200
  // THREAT_ROUNDS=500 makes 100,000 calls of it, which take minutes.
  const turns = Number(process.env['THREAT_ROUNDS'] ?? 10)
  const client = async (index: number) => {
    const found: { id: string; account: string }[] = []
    for (let turn = 0; turn < turns; turn++) found.push(...[(await askMarked(index, turn)) ?? []].flat())
    return found
  }
  const charged = (await Promise.all(Array.from({ length: toolClients }, (_, index) => client(index)))).flat()
  expect(charged).toHaveLength((toolClients * turns * 2) / 5)
  expect(new Set(charged.map(({ id }) => id)).size).toBe(charged.length)
  await areOnRecord(new Map(charged.map(({ id, account }) => [id, account])))
}, 1_200_000)
