import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { Webhook } from 'standardwebhooks'
import { dumpAll } from '../support/dump.ts'
import { startTestGateway, until, type TestGateway } from '../support/gateway.ts'
import { errorOf, operatorOf, type JsonClient } from '../support/operator.ts'
import { putEvent, putEvents } from '../support/outbox.ts'
import { coldStartMs } from '../support/postgres.ts'
import { startReceiver, type Receiver } from '../support/receiver.ts'

type Shown = {
  id: string
  state: string
  account: string
  task: string
  url: string
  type: string
  next_attempt_at: number | null
  attempts: { status: number | null; error: string | null; excerpt: string | null; duration_ms: number }[]
}

describe.each(['sqlite', 'postgres'] as const)('webhooks on %s', (engine) => {
  let gateway: TestGateway
  let operator: JsonClient
  let receiver: Receiver

  beforeAll(async () => {
    gateway = await startTestGateway({ engine })
    operator = operatorOf(gateway)
    receiver = await startReceiver()
  }, coldStartMs)
  afterAll(async () => {
    await gateway.assertBooks()
    await gateway.close()
    receiver.close()
  })

  const find = async (id: string, query = '') =>
    (await operator.all<Shown>(`/admin/webhooks${query}`)).find((shown) => shown.id === id)
  const newSecret = (account: string) => operator.call('POST', `/admin/accounts/${account}/webhook-secret`)
  const whsec = async (account: string) => String((await newSecret(account)).body['secret'])

  test('a new webhook secret is shown once, and events are signed with it and its predecessor', async () => {
    const { id } = await gateway.account()
    const told = await newSecret(id)
    expect({ status: told.status, keys: Object.keys(told.body) }).toEqual({ status: 200, keys: ['secret'] })
    const first = String(told.body['secret'])
    expect(first).toMatch(/^whsec_[\w+/]{43}=$/)
    const second = await whsec(id)
    expect(second).not.toBe(first)
    const event = await putEvent(gateway.store, id, { url: receiver.url() })
    await until(() => receiver.received.some(({ headers }) => headers['webhook-id'] === event))
    const { body, headers } = receiver.received.find((one) => one.headers['webhook-id'] === event) ?? {}
    for (const secret of [first, second]) {
      expect(new Webhook(secret).verify(body ?? '', headers as Record<string, string>)).toEqual(JSON.parse(body ?? ''))
    }
    const audit = await operator.all<{ action: string; subject: string; actor: string }>('/admin/audit')
    expect(audit.filter(({ action, subject }) => action === 'webhook-secret.replace' && subject === id)).toHaveLength(2)
    expect(audit[0]?.actor).toMatch(/^admin:/)
    const everything = await dumpAll(gateway)
    for (const secret of [first, second]) expect(everything).not.toContain(secret.slice('whsec_'.length, 30))
    expect(errorOf(await newSecret('acc_none'))).toMatchObject({ status: 404, code: 'account_not_found' })
  })

  test('events are listed with their attempts, by account, task, state and time, page by page', async () => {
    const { id: account } = await gateway.account()
    receiver.reply({ status: 500, body: 'out of paper' })
    const failed = await putEvent(gateway.store, account, { url: receiver.url(undefined, '/hook?token=canary') })
    await until(async () => (await find(failed))?.attempts.length === 1)
    const shown = await find(failed, `?account=${account}`)
    expect(shown).toMatchObject({
      id: failed,
      type: 'video.generation.succeeded',
      account,
      url: `${receiver.url()}?…`,
      state: 'pending',
      attempts: [{ status: 500, error: null, excerpt: 'out of paper' }],
    })
    expect(shown?.next_attempt_at).toBeGreaterThan(Date.now() / 1000 - 1)
    receiver.reply(410)
    const gone = await putEvent(gateway.store, account, { url: receiver.url() })
    await until(async () => (await find(gone))?.state === 'gone')
    expect(await find(gone)).toMatchObject({ url: receiver.url(), next_attempt_at: null })
    receiver.reply(204)

    const ids = async (query: string, limit?: number) =>
      (await operator.all<Shown>(`/admin/webhooks?account=${account}${query}`, limit)).map(({ id }) => id)
    expect(await ids('')).toEqual([gone, failed])
    expect(await ids('', 1)).toEqual([gone, failed])
    expect(await ids('&state=gone')).toEqual([gone])
    expect(await ids('&state=given_up')).toEqual([])
    expect(await ids(`&task=${shown?.task}`)).toEqual([failed])
    expect(await ids('&from=2099-01-01')).toEqual([])
    expect(await ids('&to=2020-01-01')).toEqual([])
    const givenUp = { state: 'given-up', next_at: null } as const
    await gateway.store.db.updateTable('webhook_event').set(givenUp).where('id', '=', failed).execute()
    expect(await ids('&state=given_up')).toEqual([failed])
    expect(await find(failed)).toMatchObject({ state: 'given_up', next_attempt_at: null })
    for (const [query, param] of [
      ['state=lost', 'state'],
      ['account=nobody', 'account'],
      ['after=evt_none', 'after'],
      ['colour=red', 'colour'],
    ] as const) {
      expect(errorOf(await operator.call('GET', `/admin/webhooks?${query}`))).toMatchObject({ status: 400, param })
    }
  })

  test('events of the other mode are listed only by the id of their account', async () => {
    const { id: account } = await gateway.account()
    const event = await putEvent(gateway.store, account, { url: receiver.url() })
    await until(async () => (await find(event))?.state === 'delivered')
    await gateway.store.db.updateTable('account').set({ mode: 'real' }).where('id', '=', account).execute()
    expect(await find(event, `?account=${account}`)).toMatchObject({ id: event, account })
    expect(await find(event)).toBeUndefined()
    await gateway.store.db.updateTable('account').set({ mode: 'sandbox' }).where('id', '=', account).execute()
  })

  test('an event is sent again by hand, and the audit records it', async () => {
    const { id: account } = await gateway.account()
    const [event = ''] = await putEvents(gateway.store, account, [{ url: receiver.url() }])
    const count = () => receiver.received.filter(({ headers }) => headers['webhook-id'] === event).length
    await until(async () => (await find(event))?.state === 'delivered')
    const told = await operator.call('POST', `/admin/webhooks/${event}/resend`)
    expect(told.status).toBe(200)
    expect(told.body).toMatchObject({ id: event, state: 'pending' })
    await until(async () => (await find(event))?.attempts.length === 2)
    expect(count()).toBe(2)
    const audit = await operator.all<{ action: string; subject: string; detail: unknown }>('/admin/audit')
    expect(audit[0]).toMatchObject({ action: 'webhook.resend', subject: event, detail: { account, was: 'delivered' } })
    for (const id of ['evt_none', '%00', '..%2f']) {
      expect((await operator.call('POST', `/admin/webhooks/${id}/resend`)).status).toBe(404)
    }
  })
})

test('in real mode a receiver on this machine gets no webhook unless the operator allows it', async () => {
  const receiver = await startReceiver()
  try {
    for (const allowPrivate of [false, true]) {
      const gateway = await startTestGateway({ yaml: `sandbox: false\nwebhooks: { allowPrivate: ${allowPrivate} }` })
      try {
        const event = await putEvent(gateway.store, gateway.accountId, { url: receiver.url() })
        const shown = async () =>
          (await operatorOf(gateway).all<Shown>('/admin/webhooks')).find(({ id }) => id === event)
        await until(async () => (await shown())?.attempts.length === 1)
        expect((await shown())?.attempts[0]).toMatchObject(
          allowPrivate ? { status: 204, error: null } : { status: null, error: 'scheme' },
        )
        expect(receiver.connections()).toBe(allowPrivate ? 1 : 0)
      } finally {
        await gateway.close()
      }
    }
  } finally {
    receiver.close()
  }
}, 120_000)
