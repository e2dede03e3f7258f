import { expect, setDefaultTimeout, test } from 'bun:test'
import type { Engine } from '../../src/store/open.ts'
import { asCanary, canary, makePlaces, type Canary, type Places } from '../support/canaries.ts'
import { beRefused, orderVideos, useAll, useBadly, useTools, visitor, type Send } from '../support/canary-visits.ts'
import { makeCanaryWorld, mistakes, type CanaryWorld, type Planted } from '../support/canary-world.ts'
import type { Served } from '../support/cli.ts'
import { until } from '../support/gateway.ts'
import { says } from '../support/streams.ts'

// K-01. Every secret that passes through a gateway is a word that stands nowhere else. The gateway does all that it can
// do, is refused, cheated, killed and started again; then everything that anybody could read is searched for them.
setDefaultTimeout(600_000)

/** Where each secret stands, and nowhere else. A place of a secret that is not listed here is a leak. */
function expected(engine: Engine, vendorKeys: readonly string[]): Record<string, readonly string[]> {
  // What is in a column is in the bytes of the database too.
  const stored = engine === 'sqlite' ? 'the file of the database' : 'what the database is told'
  // With a bucket all links are ours; without, they are the vendor's, and stand in its record too.
  const vendorLinks = engine === 'sqlite' ? ['task.record'] : []
  const lookedUp = engine === 'sqlite' ? [] : [stored]
  return {
    clientKey: [],
    operatorKey: [],
    metricsKey: [],
    unknownKey: [],
    foreignKey: [],
    installationSecret: [],
    databasePassword: [],
    bucketSecret: [],
    ...Object.fromEntries(vendorKeys.map((name) => [name, ['a vendor']])),
    writtenKey: ['a vendor', 'turnpike.yaml'],
    misplacedKey: [],
    // Shown once to the operator who had it made.
    madeKey: ['an operator'],
    webhookSecret: ['an operator'],

    prompt: ['a vendor', 'an answer'],
    // A response repeats them to the client that gave them.
    instructions: ['a vendor', 'an answer'],
    answer: ['an answer'],
    // A vendor's refusal is the client's to read.
    refusal: ['a refusal', 'an answer'],
    picture: ['a vendor'],
    edit: ['a vendor'],
    speech: ['a vendor'],
    embedding: ['a vendor'],
    tool: ['a vendor', 'an answer', ...lookedUp],
    fileBytes: ['a vendor'],
    fileName: [],
    userLabel: [],
    metadata: ['a vendor'],
    // docs/video-tasks.md: what was asked is kept until the vendor has taken it, and then dropped.
    film: ['a vendor', ...lookedUp],
    firstFrame: ['a vendor', ...lookedUp],
    doubtfulFilm: ['a vendor', 'task.ask', stored],

    idempotencyKey: [],
    header: [],
    cookie: [],
    madeUpId: [],
    query: [],
    // A refusal names the path or the model that does not exist.
    path: ['a refusal'],
    unknownModel: ['a refusal'],
    brokenBody: ['a refusal', ...lookedUp],

    // docs/webhooks.md: the URL is needed for every delivery and shown without its query; of a refusal there is an
    // excerpt.
    receiverToken: ['a receiver', 'task.webhook_url', 'webhook_event.url', stored],
    receiverWords: ['an operator', 'webhook_attempt.excerpt', stored],
    callbackToken: ['a vendor'],
    pictureLink: ['an answer'],
    // docs/video-tasks.md: links are in the record for as long as they work, and the record is what an event carries.
    filmLink: ['a receiver', 'an answer', 'task.result', 'webhook_event.payload', stored, ...vendorLinks],
  }
}

type Ports = { readonly send: Send; readonly operate: Send }

function portsOf(life: Served, places: Places, secrets: Planted): Ports {
  const adminUrl = /API is at (http:\S+)\/admin/.exec(life.output())?.[1] ?? ''
  return {
    send: visitor({ url: life.url, key: secrets.clientKey, places, answers: 'an answer', secrets }),
    operate: visitor({ url: adminUrl, key: secrets.operatorKey, places, answers: 'an operator', secrets }),
  }
}

const found = (pattern: RegExp, text: string) => pattern.exec(text)?.[0] ?? ''

/** Changes that operators make; gives the secrets that they were shown. */
async function beOperator({ send, operate }: Ports, secrets: Planted) {
  const path = `/admin/accounts/${found(/acc_\w+/, (await operate('/admin/accounts')).text)}`
  const secret = found(/whsec_[\w+/=-]+/, (await operate(`${path}/webhook-secret`, { method: 'POST' })).text)
  await operate(`${path}/credits`, { body: { amount: '5' }, headers: { 'idempotency-key': secrets.idempotencyKey } })
  // A key without money behind it, and with a limit: refused for the one, then for the other.
  await operate('/admin/accounts', { body: { name: 'poor' } })
  const order = { account: 'poor', limits: { requests_per_minute: 2 } }
  const { text: made } = await operate('/admin/keys', { body: order })
  const key = found(/sk-[\w-]+/, made)
  const ask = async () => (await send('/v1/chat/completions', { key, body: says(secrets.prompt) })).status
  expect([await ask(), await ask(), await ask()]).toEqual([402, 402, 429])
  await operate(`/admin/keys/${found(/key_\w+/, made)}`, { method: 'DELETE' })
  const foreign = [secrets.unknownKey, secrets.clientKey, secrets.metricsKey, '']
  for (const shown of foreign) await operate('/admin/keys', { key: shown })
  const broken = secrets.brokenBody
  for (const body of [broken, { account: 'poor', [broken]: 1 }, { account: broken }, { amount: broken }]) {
    await operate('/admin/keys', { body })
    await operate(`${path}/credits`, { body })
  }
  return { madeKey: asCanary(key), webhookSecret: asCanary(secret) }
}

/** Links that work without a key, and the address that a vendor was given to call back. */
async function linksOf(world: CanaryWorld, send: Send, answers: string, video: string) {
  let link = ''
  await until(async () => {
    link = found(/(?<=signature=)[\w%-]+/i, (await send(`/v1/videos/generations/${video}`)).text)
    return link !== '' && world.receiver.received.some(({ body }) => body.includes(link))
  })
  return {
    pictureLink: asCanary(found(/(?<=signature=)[\w-]{43}/, answers)),
    filmLink: asCanary(link),
    callbackToken: asCanary(found(/(?<=\/callbacks\/video\/)[\w.-]+/, await world.vendorCalls())),
  }
}

/** Everything that a gateway does; gives the secrets that it made. */
async function liveLong(world: CanaryWorld, places: Places): Promise<Record<string, Canary>> {
  const { secrets, receiver } = world
  // The receiver of webhooks refuses, redirects, hangs up or accepts, in turn.
  const no = secrets.receiverWords
  const replies = [{ status: 500, body: no }, { status: 302, location: `http://127.0.0.1:1/${no}` }, 'hang-up'] as const
  receiver.reply(() => replies[receiver.received.length % (replies.length + 1)] ?? 204)

  const life = await world.serve()
  const { send, operate } = portsOf(life, places, secrets)
  const shown = await beOperator({ send, operate }, secrets)
  const used = await useAll(send, secrets)
  expect(used.filter(({ status }) => status !== 200)).toEqual([])
  // Under all of that load the database may be slow to answer.
  await until(async () => (await send('/readyz')).status === 200)
  await useTools(send, secrets)
  await world.vendorCalls()
  const videos = await orderVideos(send, secrets, receiver.url())
  const links = await linksOf(world, send, used.map(({ text }) => text).join(''), videos[0] ?? '')
  await useBadly(send, secrets, 'passing')
  await beRefused(send, secrets)
  world.breakBucket()
  await useBadly(send, secrets, 'tiring')
  await world.vendorCalls()
  // All of it as operators see it, once they can see how the receiver refused.
  await until(async () => (await operate('/admin/webhooks?limit=100')).text.includes(no))
  for (const list of ['accounts', 'keys', 'requests', 'tasks', 'audit', 'models', 'channels', 'usage']) {
    expect((await operate(`/admin/${list}`)).status).toBe(200)
  }
  for (const key of [secrets.operatorKey, secrets.metricsKey]) {
    expect((await operate('/metrics', { key, place: 'the metrics' })).status).toBe(200)
  }
  await changeSettings(world, life)
  for (const args of [
    ['keys', 'list'],
    ['webhooks', 'list'],
    ['requests', 'list'],
    ['tasks', 'list'],
  ]) {
    await world.command(args)
  }
  const nowhere = `postgres://turnpike:${secrets.databasePassword}@127.0.0.1:1/nowhere`
  await world.command(['accounts', 'list'], { DATABASE_URL: nowhere })
  life.signal('SIGTERM')
  expect(await life.exited).toBe(0)
  expect(life.output()).toContain('an attempt failed')
  return { ...shown, ...links }
}

/** To files that are not valid, with a key beside what is wrong; and back. */
async function changeSettings(world: CanaryWorld, life: Served): Promise<void> {
  for (const mistake of mistakes) {
    const complaints = () => life.output().split('the old one stays in use').length
    const before = complaints()
    world.writeSettings(mistake)
    life.signal('SIGHUP')
    await until(() => complaints() > before)
    await world.command(['check'])
  }
  world.writeSettings()
}

const killed = 137

/** Is killed in the middle of an answer or an order: what it leaves is gathered before the next start repairs it. */
async function dieEarly(world: CanaryWorld, places: Places, crash: 'mid-stream' | 'task-sent'): Promise<void> {
  const { secrets } = world
  const life = await world.serve(`${crash}:1`)
  const { send } = portsOf(life, places, secrets)
  if (crash === 'mid-stream') await useAll(send, secrets)
  else await send('/v1/videos/generations', { body: { model: 'wan2.6-t2v', input: { prompt: secrets.doubtfulFilm } } })
  expect(await life.exited).toBe(killed)
  await world.gather()
}

test('the search finds a secret and half of one, in plain text, hex and base64', () => {
  const places = makePlaces()
  const [secret, made, absent] = [canary('sk-'), asCanary('made-by-somebody-else-0123456789'), canary()]
  const half = Buffer.from(`....${secret.slice(0, -16)}`)
  places.add('plain', `a line with ${secret} in it`)
  places.add('half', half)
  places.add('hex', Buffer.from(made).toString('hex'))
  for (const before of ['', 'a', 'ab']) places.add(`base64 ${before}`, btoa(`${before}${secret}.`))
  places.add('the last four', secret.slice(-4))
  expect(places.find({ secret, made, absent })).toEqual({
    secret: ['base64 ', 'base64 a', 'base64 ab', 'half', 'plain'],
    made: ['hex'],
    absent: [],
  })
})

test.each(['sqlite', 'postgres'] as const)('every secret is found only where it is expected, on %s', async (engine) => {
  const places = makePlaces()
  const world = await makeCanaryWorld(engine, places)
  const { secrets } = world
  try {
    const made = await liveLong(world, places)
    await world.gather()
    await dieEarly(world, places, 'mid-stream')
    await dieEarly(world, places, 'task-sent')
    // This start repairs what the killed processes have left; then the database goes away.
    const last = await world.serve()
    await world.cutDatabase()
    const { send } = portsOf(last, places, secrets)
    await useAll(send, secrets)
    await send('/readyz')
    last.signal('SIGTERM')
    await last.exited
    await world.gather()
    await world.gatherElsewhere()

    const allowed = Object.entries(expected(engine, world.vendorKeys)).map(([name, at]) => [name, at.toSorted()])
    expect(places.find({ ...secrets, ...made })).toEqual(Object.fromEntries(allowed))
  } finally {
    await world.close()
  }
})
