import { expect, setDefaultTimeout, test } from 'bun:test'
import { formatDollars, nano, parseDollars, type Nano } from '../../src/base/money.ts'
import { checkLedger } from '../../src/store/check.ts'
import type { Store } from '../../src/store/open.ts'
import { makeWorld, pause, type Node, type World } from '../chaos/world.ts'
import { balances } from '../support/ledger.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { jsonPost, sendRaw } from '../support/raw-socket.ts'
import { says } from '../support/streams.ts'

// M-02. Three gateways, each a process of its own, on one PostgreSQL, and one account that pays for a part of what is
// asked of it. No request is too small for a hold, and no account too rich. THREAT_ROUNDS=10 makes 50,000 requests of
// it.
const rounds = Number(process.env['THREAT_ROUNDS'] ?? 1)
setDefaultTimeout(120_000 * rounds)

const asks = 5_000 * rounds
const funds = nano(15_000_000_000n * BigInt(rounds))
const nodes = 3
/** Together they hold most of the balance. With more, the first node to ask would hold all of it. */
const clients = 600

/** `flat` costs exactly its hold. `counted` is held for thirty times what it costs, so that most of it comes back. */
const settings = (vendorUrl: string) => `sandbox: false
channels:
  - { id: first, vendor: openai, baseUrl: "${vendorUrl}/openai/v1", keys: ["one"] }
models:
  - id: flat
    capability: chat
    channels: [{ channel: first }]
    prices: { inputPerMillion: "0", outputPerMillion: "0", perRequest: "0.01" }
  - id: counted
    capability: chat
    channels: [{ channel: first }]
    outputTokensMax: 300
    prices: { inputPerMillion: "1", outputPerMillion: "100" }
timeouts: { drainSeconds: 1 }
log: { level: warn }
`
const flat = says('Hi', { model: 'flat' })
const perFlat = nano(10_000_000n)
const bodies = [
  flat,
  says('Hi sandbox:tokens=10', { model: 'counted' }),
  says('Hi', { model: 'flat', stream: true }),
  says('Hi sandbox:tokens=10 sandbox:pace=2', { model: 'counted', stream: true }),
]

type Heard = { readonly node: string; readonly status: number; readonly id: string; readonly text: string }

/** A database that is too slow for a moment is a 503 that charged nothing, and the client tries again. */
async function ask({ name, url }: Node, key: string, body: object): Promise<Heard> {
  for (;;) {
    const { status, text } = await sendRaw(url, jsonPost({ url, key }, body), { quietMs: 60_000 })
    if (status !== 503) return { node: name, status, id: /\r\nx-request-id: (\S+)/i.exec(text)?.[1] ?? '', text }
  }
}

/** Clients that ask round the nodes, all at once, until everything has been asked. */
async function rush(world: World, key: string): Promise<Heard[]> {
  const heard: Heard[] = []
  let next = 0
  const client = async () => {
    while (next < asks) {
      const turn = next++
      const node = world.nodes[turn % nodes]
      const body = bodies[Math.floor(turn / nodes) % bodies.length]
      if (node === undefined || body === undefined) throw new Error('nobody to ask, or nothing to say')
      heard.push(await ask(node, key, body))
    }
  }
  await Promise.all(Array.from({ length: clients }, client))
  return heard
}

/** One after another, until a node has nothing left to spend, and then the next node. */
async function spendTheRest(world: World, key: string): Promise<Heard[]> {
  const heard: Heard[] = []
  for (const node of world.nodes) {
    do heard.push(await ask(node, key, flat))
    while (heard.at(-1)?.status === 200 && heard.length < funds / perFlat)
  }
  return heard
}

const balanceOf = (store: Store, id: string) =>
  store.db.selectFrom('account').select(['posted', 'held']).where('id', '=', id).executeTakeFirstOrThrow()

/** The account as the database has it, looked at again and again until the signal. */
async function watch(store: Store, id: string, signal: AbortSignal) {
  const seen = { looks: 0, leastFree: 0n, leastPosted: 0n, mostHeld: 0n }
  while (!signal.aborted) {
    const { posted, held } = await balanceOf(store, id)
    seen.looks++
    if (posted - held < seen.leastFree) seen.leastFree = posted - held
    if (posted < seen.leastPosted) seen.leastPosted = posted
    if (held > seen.mostHeld) seen.mostHeld = held
    // Hundreds of times a second are enough, and leave the machine to the gateways.
    await pause(2)
  }
  return seen
}

type Line = { readonly ref: string; readonly status: number; readonly cost: string }

const billOf = async ({ billUrl }: World) => ((await (await fetch(billUrl)).json()) as { data: Line[] }).data
const total = (amounts: readonly bigint[]): Nano => nano(amounts.reduce((sum, amount) => sum + amount, 0n))

test('thousands of requests on three nodes never overdraw a balance, and each answer is paid for', async () => {
  const server = await sharedPostgres()
  const databaseUrl = await server.freshDatabase()
  const world = await makeWorld({ engine: 'postgres', nodes, databaseUrl, settings })
  const store = await world.openStore()
  try {
    await Promise.all(world.nodes.map((node) => node.start()))
    const { key, ...account } = await world.fund('shared', formatDollars(funds))
    const over = new AbortController()
    const watched = watch(store, account.id, over.signal)
    const heard = [...(await rush(world, key)), ...(await spendTheRest(world, key))]
    over.abort()
    const seen = await watched
    for (const node of world.nodes) node.terminate()
    for (const node of world.nodes) {
      expect({ code: await node.ended(), said: node.output() }).toEqual({ code: 0, said: expect.any(String) })
    }

    // What clients were told: an answer with its end, or that there is no money. All nodes sold, and all refused.
    const paid = heard.filter(({ status }) => status === 200)
    const refused = heard.filter(({ status }) => status === 402)
    expect(paid.length + refused.length).toBe(heard.length)
    expect(new Set(heard.map(({ id }) => id)).size).toBe(heard.length)
    for (const { name } of world.nodes) {
      for (const some of [paid, refused]) expect(some.filter(({ node }) => node === name).length).toBeGreaterThan(100)
    }
    for (const { text } of paid) expect(text).toMatch(/data: \[DONE\]|"object":"chat\.completion"/)
    for (const { text } of refused) expect(text).toContain('"insufficient_balance"')

    // What the database had at any moment, and has now: spent to the last request that it pays for, and no further.
    expect(seen).toMatchObject({ leastFree: 0n, leastPosted: 0n })
    expect(seen.looks).toBeGreaterThan(100)
    expect(seen.mostHeld).toBeGreaterThan(perFlat)
    const { posted, held } = await balanceOf(store, account.id)
    expect(held).toBe(nano(0n))
    expect(posted).toBeLessThan(perFlat)
    expect(posted).toBeGreaterThanOrEqual(0n)
    expect(await store.db.selectFrom('lease').select('node').where('amount', '<>', nano(0n)).execute()).toEqual([])
    expect(await store.db.selectFrom('hold').select('id').where('state', '=', 'open').execute()).toEqual([])

    // Every answer is on record, charged by the vendor's usage; refusals are not, and never reached the vendor.
    const records = await store.db
      .selectFrom('request')
      .innerJoin('attempt', 'attempt.request_id', 'request.id')
      .select(['request.id', 'request.status', 'request.basis', 'request.cost', 'attempt.id as ref', 'vendor_cost'])
      .execute()
    const recorded = new Set(records.map(({ id }) => id))
    expect(paid.filter(({ id }) => !recorded.has(id))).toEqual([])
    expect(records).toHaveLength(paid.length)
    expect(new Set(records.map(({ status, basis }) => `${status} ${basis}`))).toEqual(new Set(['200 vendor']))

    // The vendor's own bill, call by call, is what was charged: nothing was sold that was not paid for.
    const bill = await billOf(world)
    const charged = new Map(records.map(({ ref, cost }) => [ref, cost]))
    expect(bill.filter(({ ref, cost }) => parseDollars(cost) !== charged.get(ref))).toEqual([])
    expect(bill).toHaveLength(records.length)
    expect(records.filter(({ cost, vendor_cost: vendorCost }) => cost !== vendorCost)).toEqual([])
    expect(total(records.map(({ cost }) => cost))).toBe(nano(funds - posted))

    expect(await checkLedger(store)).toEqual([])
    const books = await balances(store)
    expect(total(Object.values(books))).toBe(nano(0n))
    expect(books).toMatchObject({ [`cust:${account.id}`]: posted, 'payable:openai': nano(funds - posted) })
  } finally {
    await store.close()
    await world.close()
    await server.dropDatabase(databaseUrl)
  }
})
