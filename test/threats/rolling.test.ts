import { beforeAll, describe, expect, test } from 'bun:test'
import { Client } from 'pg'
import { judge } from '../chaos/books.ts'
import type { Seen } from '../chaos/load.ts'
import { makeWorld, model, type Node } from '../chaos/world.ts'
import { until } from '../support/gateway.ts'
import { makeNewerRelease, type NewerRelease } from '../support/newer-release.ts'
import { sharedPostgres } from '../support/postgres.ts'

// F-10: an older and a newer version on one database, under load. No other version is released yet, so the newer one is
// a copy of this one with some migrations more, which it carries out by itself when it starts, while the older one
// serves. What this cannot show is code that differs: that a newer version writes nothing which an older one cannot
// read is for each release to say. Nor does it show a migration that takes long: these tables are small.

const slowMs = 600_000
/** Requests that a node answers before something changes. */
const requestsEach = 40
const clientsEach = 2

let newer: NewerRelease
beforeAll(async () => {
  newer = makeNewerRelease()
  await sharedPostgres()
}, slowMs)

describe.each(['leased', 'strict'] as const)('two versions on one database, %s', (mode) => {
  test(
    'a newer version migrates and serves beside an older one: no request fails, no nano is lost',
    async () => {
      const databaseUrl = await (await sharedPostgres()).emptyDatabase()
      const world = await makeWorld({
        engine: 'postgres',
        nodes: 2,
        databaseUrl,
        mode,
        programs: [undefined, newer.program],
      })
      try {
        const [old, next] = world.nodes
        if (old === undefined || next === undefined) throw new Error('there are no two nodes')
        await old.start()
        const customer = { ...(await world.fund('roller', '100')), idempotent: false }
        const seen: Seen[] = []
        const onOld = keepAsking(old, customer.key, seen)
        await onOld.answers(requestsEach)
        expect((await migrationsOf(databaseUrl)).filter((name) => newer.migrations.includes(name))).toEqual([])

        await next.start()
        expect(await migrationsOf(databaseUrl)).toEqual(expect.arrayContaining([...newer.migrations]))
        const onNext = keepAsking(next, customer.key, seen)
        await Promise.all([onOld.answers(requestsEach), onNext.answers(requestsEach)])

        // As a balancer does: no new requests, and those under way come to their end.
        await onOld.stop()
        old.terminate()
        expect(await old.ended()).toBe(0)
        await old.start()
        const onOldAgain = keepAsking(old, customer.key, seen)
        await Promise.all([onOldAgain.answers(requestsEach), onNext.answers(requestsEach)])

        await Promise.all([onOldAgain.stop(), onNext.stop()])
        for (const node of [old, next]) node.terminate()
        expect([await old.ended(), await next.ended()]).toEqual([0, 0])
        expect(seen.filter(({ saw }) => saw !== 'end')).toEqual([])
        expect(seen.length).toBeGreaterThan(5 * requestsEach)
        const load = { seen, idempotencyKeys: new Set<string>(), stop: () => Promise.resolve() }
        const { wrong, vendorCalls, holdsLeft } = await judge(world, load, [customer])
        expect(wrong).toEqual([])
        expect({ vendorCalls, holdsLeft }).toEqual({ vendorCalls: chatsIn(seen), holdsLeft: 0 })
      } finally {
        await world.close()
        await (await sharedPostgres()).dropDatabase(databaseUrl)
      }
    },
    slowMs,
  )
})

/** What is asked in turn: plain, streamed, and the lists that read what was written. */
const asks = ['plain', 'stream', 'plain', '/v1/usage?group_by=model', 'stream', '/v1/usage?records=true', '/v1/balance']

function chatsIn(seen: readonly Seen[]): number {
  return seen.filter(({ requestId }) => requestId !== undefined).length
}

/** Clients that ask one node, one request after another each. */
function keepAsking({ url }: Node, key: string, seen: Seen[]) {
  const state = { isOver: false, answers: 0 }
  const client = async (start: number) => {
    for (let turn = start; !state.isOver; turn++) {
      seen.push(await ask(url, key, asks[turn % asks.length] ?? 'plain'))
      state.answers++
    }
  }
  const clients = Array.from({ length: clientsEach }, (_, index) => client(index))
  return {
    /** Resolves after that many more answers. */
    answers(count: number) {
      const enough = state.answers + count
      return until(() => state.answers >= enough)
    },
    async stop() {
      state.isOver = true
      await Promise.all(clients)
    },
  }
}

async function ask(url: string, key: string, what: string): Promise<Seen> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
  try {
    if (what.startsWith('/')) {
      const response = await fetch(url + what, { headers, keepalive: false })
      await response.text()
      return { requestId: undefined, status: response.status, saw: response.status === 200 ? 'end' : 'refusal' }
    }
    const stream = what === 'stream'
    const content = `Hello. sandbox:tokens=20${stream ? ' sandbox:pace=1' : ''}`
    const body = JSON.stringify({ model, stream, messages: [{ role: 'user', content }] })
    const response = await fetch(`${url}/v1/chat/completions`, { method: 'POST', headers, body, keepalive: false })
    const text = await response.text()
    const requestId = response.headers.get('x-request-id') ?? undefined
    const isWhole = stream ? text.endsWith('data: [DONE]\n\n') : text.includes('"chat.completion"')
    const { status } = response
    return { requestId, status, saw: status !== 200 ? 'refusal' : isWhole ? 'end' : 'part' }
  } catch {
    return { requestId: undefined, status: 0, saw: 'nothing' }
  }
}

async function migrationsOf(databaseUrl: string): Promise<string[]> {
  const client = new Client({ connectionString: databaseUrl })
  await client.connect()
  try {
    const { rows } = await client.query<{ name: string }>('select name from kysely_migration')
    return rows.map(({ name }) => name)
  } finally {
    await client.end()
  }
}
