import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import type { GatewayError } from '../../src/base/errors.ts'
import { silentLog } from '../../src/base/log.ts'
import type { Store } from '../../src/store/open.ts'
import { attemptsOfEvents, eventById } from '../../src/store/webhooks.ts'
import { attemptLimits } from '../../src/tasks/webhooks/attempt.ts'
import { openWebhooks, type WebhookParts, type Webhooks } from '../../src/tasks/webhooks/webhooks.ts'
import { eachEngine } from '../support/engines.ts'
import { until } from '../support/gateway.ts'
import { handTimers } from '../support/hand-timers.ts'
import { movableClock } from '../support/movable-clock.ts'
import { putAccount, putEvent, putEvents } from '../support/outbox.ts'
import { startReceiver, type Received, type Receiver } from '../support/receiver.ts'
import { chunk, flood, startVendor } from '../support/vendor.ts'

setDefaultTimeout(600_000)

const secret = 'an installation secret of enough bytes'
const headersOf = ({ headers }: Received) => headers as Record<string, string>
// Here 127.0.0.2 stands for the open internet, and 127.0.0.1 for the inner network that must not be reached.
const isPublic = (address: string) => address === '127.0.0.2'

const outcome = (webhooks: Webhooks, url: string) =>
  webhooks.checkUrl(url).then(
    () => 'taken',
    ({ kind, details }: GatewayError) => `${kind} ${details.param}`,
  )

eachEngine('webhooks', (open, place, engine) => {
  let clock: ReturnType<typeof movableClock>
  let store: Store
  let receiver: Receiver
  let accountId: string
  let opened: Webhooks[]
  let child: ReturnType<typeof Bun.spawn> | undefined

  beforeEach(async () => {
    clock = movableClock()
    receiver = await startReceiver()
    opened = []
  })
  afterEach(async () => {
    child?.kill('SIGKILL')
    receiver.close()
    for (const each of opened) await each.close({ withinMs: 0 })
  })

  async function openHere(at?: Awaited<ReturnType<typeof place>>) {
    store = await open({ clock, ...(at !== undefined && { at }) })
    accountId = await putAccount(store)
  }

  function start(more: Partial<WebhookParts> = {}): Webhooks {
    const settings = { allowPrivate: false }
    const outside = { resolve: () => Promise.resolve(['127.0.0.1']) }
    const installation = { store, secret: Buffer.from(secret), node: 'here', settings, clock, log: silentLog }
    const made = openWebhooks({ ...installation, mode: 'sandbox', outside, ...more })
    opened.push(made)
    return made
  }

  const putMany = (length: number) => {
    const events = Array.from({ length }, () => ({ url: receiver.url() }))
    return putEvents(store, accountId, events)
  }
  const attempts = async (id: string) => (await attemptsOfEvents(store.db, [id])).get(id) ?? []
  const stateOf = async (id: string) => (await eventById(store.db, id))?.state

  async function deliver(webhooks: Webhooks): Promise<Received> {
    const before = receiver.received.length
    await putEvent(store, accountId, { url: receiver.url() })
    webhooks.wake()
    await until(() => receiver.received.length > before)
    return receiver.received.at(-1) as Received
  }

  // T-08: as many as may be on their way to one host, and so many kills that a hundred deliveries are cut off.
  test('every event arrives under one id with the same bytes after a hundred deliveries were killed', async () => {
    const where = await place()
    await openHere(where)
    const atOnce = 10
    const ids = await putMany(atOnce)
    const program = join(import.meta.dir, '../support/deliver-outbox.ts')
    const run = (aheadMs: number) => {
      const given = [JSON.stringify(where), String(aheadMs), secret]
      child = Bun.spawn([process.execPath, program, ...given], { stdout: 'ignore', stderr: 'inherit' })
      return child
    }
    const states = async () => new Set(await Promise.all(ids.map(stateOf)))
    let aheadMs = 0
    const kills = 10
    for (let lives = 1; lives <= kills; lives++) {
      // Half of the processes die before the answer comes, half just as it comes.
      receiver.reply(lives % 2 === 0 ? 500 : 'silence')
      const life = run(aheadMs)
      await until(() => receiver.received.length >= lives * atOnce)
      life.kill('SIGKILL')
      await life.exited
      expect(await states()).toEqual(new Set(['pending']))
      // Beyond its claim, and beyond the wait after a failure that it may have recorded.
      aheadMs += 60 * 60_000
    }
    receiver.reply(204)
    const last = run(aheadMs)
    await until(async () => [...(await states())].every((state) => state === 'delivered'))
    last.kill('SIGKILL')
    await last.exited
    expect(receiver.received).toHaveLength((kills + 1) * atOnce)
    const bodies = new Map(ids.map((id) => [id, new Set<string>()]))
    for (const { headers, body } of receiver.received) bodies.get(String(headers['webhook-id']))?.add(body)
    expect([...bodies.values()].map(({ size }) => size)).toEqual(ids.map(() => 1))
    const counted = Map.groupBy(receiver.received, ({ headers }) => headers['webhook-id'])
    expect([...counted.values()].map((each) => each.length)).toEqual(ids.map(() => kills + 1))
  })

  // T-09, S-02 to S-06
  describe('an address inside of the network', () => {
    test('an inner address is refused when it is given, as a number, as a name and in disguise', async () => {
      await openHere()
      const { port } = receiver
      const names: Record<string, string[]> = {
        localhost: ['127.0.0.1'],
        'inside.test': ['127.0.0.1'],
        'both.test': ['127.0.0.2', '127.0.0.1'],
        'none.test': [],
      }
      const resolve = (name: string) => Promise.resolve(names[name] ?? ['127.0.0.2'])
      const webhooks = start({ mode: 'real', outside: { isPublic, resolve } })
      const refused = [
        `http://127.0.0.1:${port}/`,
        `https://127.0.0.1:${port}/`,
        'http://outside.test/',
        'https://127.0.0.1/',
        'https://2130706433/',
        'https://[::ffff:7f00:1]/',
        'https://169.254.169.254/',
        'https://user:pass@outside.test/',
        'https://outside.test:6379/',
        'https://localhost/',
        'https://inside.test/',
        'https://both.test/',
        'https://none.test/',
        'ftp://outside.test/',
        'not a url',
      ]
      for (const url of refused) {
        const thrown: unknown = await webhooks.checkUrl(url).catch((error: unknown) => error)
        expect({ url, thrown }).toMatchObject({
          url,
          thrown: { kind: 'bad-request', details: { code: 'invalid_url', param: 'webhook_url' } },
        })
        expect(String(thrown)).not.toMatch(/\d/)
      }
      await webhooks.checkUrl('https://outside.test/hook?a=b')
      await start({ mode: 'real', settings: { allowPrivate: true } }).checkUrl(receiver.url())
      await start({ mode: 'sandbox' }).checkUrl(receiver.url('localhost'))
      expect(receiver.connections()).toBe(0)
    })

    test('the sandbox refuses addresses beyond this machine, and every setting refuses cloud metadata', async () => {
      await openHere()
      const names: Record<string, string[]> = {
        'inside.test': ['10.0.0.1'],
        'both.test': ['127.0.0.1', '192.168.1.1'],
        'metadata.test': ['169.254.169.254'],
      }
      const outside = { resolve: (name: string) => Promise.resolve(names[name] ?? ['127.0.0.1']) }
      const sandbox = start({ outside })
      const trusting = start({ mode: 'real', settings: { allowPrivate: true }, outside })
      const metadata = [
        'http://169.254.169.254/',
        'http://[fe80::1]/',
        'http://metadata.test/',
        'http://100.100.100.200/',
        'http://[fd00:ec2::254]/',
        'http://168.63.129.16/',
        'http://0.0.0.0/',
        'http://[::ffff:a9fe:a9fe]/',
      ]
      const privates = ['http://10.0.0.1/x', 'http://192.168.1.1/', 'http://[fd00::1]/', 'http://inside.test/']
      for (const url of [...metadata, ...privates, 'http://both.test/']) {
        expect([url, await outcome(sandbox, url)]).toEqual([url, 'bad-request webhook_url'])
      }
      for (const url of metadata) expect([url, await outcome(trusting, url)]).toEqual([url, 'bad-request webhook_url'])
      for (const url of [...privates, receiver.url()])
        expect([url, await outcome(trusting, url)]).toEqual([url, 'taken'])
      for (const url of [receiver.url(), 'http://[::1]:9000/']) expect(await outcome(sandbox, url)).toBe('taken')
      expect(receiver.connections()).toBe(0)
    })

    test('the refusal states the rule, in the same words for every host', async () => {
      await openHere()
      const names: Record<string, string[]> = { 'inside.test': ['10.0.0.1'], 'link.test': ['169.254.0.9'] }
      const outside = { resolve: (name: string) => Promise.resolve(names[name] ?? []) }
      const words = async (more: Partial<WebhookParts>, hosts: readonly string[]) => {
        const webhooks = start({ outside, ...more })
        const said = hosts.map((host) => webhooks.checkUrl(`https://${host}/`).catch(String))
        return [...new Set(await Promise.all(said))]
      }
      const hosts = ['10.0.0.1', 'inside.test', '169.254.0.9', 'link.test', 'nowhere.test']
      const allowed = { mode: 'real', settings: { allowPrivate: true } } as const
      const setting = /Operators can allow private addresses.* with webhooks\.allowPrivate\.$/
      expect(await words({ mode: 'real' }, hosts)).toEqual([expect.stringMatching(setting)])
      expect(await words({ mode: 'real' }, hosts)).toEqual([
        expect.stringContaining('are sent only to public addresses'),
      ])
      expect(await words({ mode: 'sandbox' }, hosts)).toEqual([expect.stringMatching(setting)])
      expect(await words({ mode: 'sandbox' }, hosts)).toEqual([expect.stringContaining("the gateway's own machine")])
      // These are refused by every setting.
      expect(await words(allowed, ['169.254.0.9', 'link.test', 'nowhere.test'])).toEqual([
        expect.stringMatching(/never to link-local addresses or cloud metadata services\.$/),
      ])
    })

    test('a name that leads inside by the time of the delivery is not dialled, and the task is unharmed', async () => {
      await openHere()
      const account = await putAccount(store, 'real')
      let leadsTo = '127.0.0.2'
      const webhooks = start({ mode: 'real', outside: { isPublic, resolve: () => Promise.resolve([leadsTo]) } })
      const url = 'https://rebinding.test/'
      await webhooks.checkUrl(url)
      leadsTo = '127.0.0.1'
      const ids = await putEvents(store, account, [{ url }, { url: `http://127.0.0.1:${receiver.port}/` }])
      webhooks.wake()
      for (const id of ids) await until(async () => (await attempts(id)).length === 1)
      expect((await attempts(ids[0] ?? ''))[0]).toMatchObject({ status: 0, why: 'not-public' })
      expect((await attempts(ids[1] ?? ''))[0]).toMatchObject({ status: 0, why: 'scheme' })
      const tasks = await store.db.selectFrom('task').select('state').where('account_id', '=', account).execute()
      // Unchanged since they ended.
      expect(tasks).toEqual([{ state: 'failed' }, { state: 'failed' }])
      expect(receiver.connections()).toBe(0)
    })

    test('a redirect to an inner address is not followed', async () => {
      await openHere()
      const inside = await startReceiver()
      try {
        for (const status of [301, 302, 303, 307, 308]) {
          receiver.reply({ status, location: inside.url() })
          const id = await putEvent(store, accountId, { url: receiver.url() })
          start().wake()
          await until(async () => (await attempts(id)).length === 1)
          expect((await attempts(id))[0]).toMatchObject({ status })
          expect(await stateOf(id)).toBe('pending')
        }
        expect(inside.connections()).toBe(0)
      } finally {
        inside.close()
      }
    })
  })

  // T-10
  test('a thousand receivers that never answer delay no others', async () => {
    await openHere()
    const tarpit = await startReceiver('silence')
    try {
      // Longer than a busy machine takes for all of this: the default of fifteen seconds may not be enough.
      const webhooks = start({ attemptLimits: { ...attemptLimits, totalMs: 600_000 } })
      await putEvent(store, accountId, { url: receiver.url('good.test') })
      webhooks.wake()
      await until(() => receiver.received.length === 1)
      const bad = Array.from({ length: 1_000 }, (_, n) => ({ url: tarpit.url(n < 500 ? 'one.test' : `h${n}.test`) }))
      const stuck = await putEvents(store, accountId, bad)
      webhooks.wake()
      await until(() => tarpit.received.length === 25)
      // Some to a host that answered before, and some of another account to hosts that are new.
      const other = await putAccount(store)
      const good = Array.from({ length: 5 }, () => ({ url: receiver.url('good.test') }))
      const young = Array.from({ length: 5 }, (_, n) => ({ url: receiver.url(`new${n}.test`) }))
      await putEvents(store, accountId, good)
      await putEvents(store, other, young)
      // The gateway is not woken for these: it finds them by polling.
      await until(() => receiver.received.length === 11)
      // None of the stuck deliveries has reached its timeout yet.
      expect([...(await attemptsOfEvents(store.db, stuck)).values()].flat()).toEqual([])
      expect(tarpit.received).toHaveLength(25)
      const atOne = tarpit.received.filter(({ headers }) => headers.host?.startsWith('one.test'))
      expect(atOne.length).toBeLessThanOrEqual(10)
    } finally {
      tarpit.close()
    }
  })

  test('events to one host are delivered at most ten at a time, also with long answers', async () => {
    await openHere()
    receiver.reply({ status: 200, body: 'x'.repeat(1_000_000) })
    await putMany(40)
    start().wake()
    await until(async () => {
      const left = await store.db.selectFrom('webhook_event').select('id').where('state', '=', 'pending').execute()
      return left.length === 0
    })
    expect(receiver.received).toHaveLength(40)
    expect(receiver.atOnceMax()).toBeLessThanOrEqual(10)
  })

  test('an endless answer is not read to its end, and its status counts', async () => {
    await openHere()
    const sent = Promise.withResolvers<number>()
    const endless = await startVendor(async (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n')
      sent.resolve(await flood(socket, chunk('x'.repeat(64 * 1024)), 64 * 1024 * 1024))
    })
    const id = await putEvent(store, accountId, { url: endless.baseUrl })
    start().wake()
    // The limit is 64 KiB; the rest is what the sockets' own buffers had taken by then.
    expect(await sent.promise).toBeLessThan(16 * 1024 * 1024)
    await until(async () => (await stateOf(id)) === 'delivered')
    await endless.stop()
  })

  // T-11
  describe('verification with the official library', () => {
    test('the library accepts what we sent, and rejects what is altered, late or signed by another key', async () => {
      await openHere()
      const webhooks = start()
      const key = new Webhook((await webhooks.secrets.replace(accountId, 'test')) ?? '')
      const one = await deliver(webhooks)
      expect(key.verify(one.body, headersOf(one))).toEqual(JSON.parse(one.body))
      const stranger = new Webhook((await webhooks.secrets.replace(await putAccount(store), 'test')) ?? '')
      expect(() => stranger.verify(one.body, headersOf(one))).toThrow('No matching signature')
      expect(() => key.verify(one.body.replace('succeeded', 'suceeeded'), headersOf(one))).toThrow()
      for (const name of ['webhook-id', 'webhook-timestamp']) {
        const altered = {
          ...headersOf(one),
          [name]: String(headersOf(one)[name]).replace(/.$/, (end) => (end === '1' ? '2' : '1')),
        }
        expect(() => key.verify(one.body, altered)).toThrow('No matching signature')
      }
      clock.advance(-6 * 60_000)
      const old = await deliver(webhooks)
      expect(() => key.verify(old.body, headersOf(old))).toThrow('too old')
    })

    test('an event verifies with the old and the new secret while the secret is replaced', async () => {
      await openHere()
      const webhooks = start()
      const [old, young] = [
        (await webhooks.secrets.replace(accountId, 'test')) ?? '',
        (await webhooks.secrets.replace(accountId, 'test')) ?? '',
      ]
      const one = await deliver(webhooks)
      expect(one.headers['webhook-signature']).toMatch(/^v1,\S+ v1,\S+$/)
      for (const each of [old, young]) expect(new Webhook(each).verify(one.body, headersOf(one))).toBeDefined()
    })
  })

  // T-12
  // The schedule, its jitter and what a 410 does: `src/tasks/webhooks/`.
  test('thousands of events to one dead host make few connections a minute', async () => {
    await openHere()
    receiver.reply('hang-up')
    // Ten thousand; on PostgreSQL putting them there takes longer than all the rest.
    await putMany(engine === 'sqlite' ? 10_000 : 2_000)
    const timers = handTimers()
    const webhooks = start({ timers })
    const minutes: number[] = []
    for (let minute = 0; minute < 4; minute++) {
      const before = receiver.connections()
      for (let second = 0; second < 60; second += 5) {
        clock.advance(5_000)
        webhooks.wake()
        await settled(timers)
      }
      minutes.push(receiver.connections() - before)
    }
    expect(minutes[0]).toBeWithin(5, 20)
    expect(Math.max(...minutes)).toBeLessThanOrEqual(100)
    // The host is alive again: after one more pause, deliveries go on.
    receiver.reply(204)
    clock.advance(5 * 60_000)
    webhooks.wake()
    await until(async () => {
      timers.fire()
      const delivered = store.db.selectFrom('webhook_event').select('id').where('state', '=', 'delivered')
      return (await delivered.limit(100).execute()).length === 100
    })
  })

  /** Until the look has ended, with those that it asked for at once, and all it found has been sent and recorded. */
  async function settled(timers: ReturnType<typeof handTimers>): Promise<void> {
    await until(async () => {
      const [waitMs] = timers.waiting
      if (waitMs === 0) timers.fire()
      if (waitMs === undefined || waitMs === 0) return false
      const claimed = await store.db
        .selectFrom('webhook_event')
        .select('id')
        .where('claim_until', '>', clock.now())
        .limit(1)
        .execute()
      return claimed.length === 0
    })
  }
})
