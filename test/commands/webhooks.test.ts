import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { Webhook } from 'standardwebhooks'
import { findAccount } from '../../src/store/accounts.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import { makeCli, type Cli } from '../support/cli.ts'
import { until } from '../support/gateway.ts'
import { putEvent } from '../support/outbox.ts'
import { startReceiver, type Received, type Receiver } from '../support/receiver.ts'

// Gateways and some commands are processes of their own, and machines that test are busy.
setDefaultTimeout(120_000)

type Shown = { id: string; state: string; attempts: { status: number | null; error: string | null }[] }

let cli: Cli
let store: Store
let receiver: Receiver
let accountId: string

beforeAll(async () => {
  cli = makeCli()
  await cli.serve()
  store = await openStore({ file: join(cli.folder, 'data/turnpike.sqlite') })
  receiver = await startReceiver()
  accountId = (await findAccount(store.db, { mode: 'sandbox', nameOrId: 'demo' }))?.id ?? ''
})
afterAll(async () => {
  await store.close()
  await cli.close()
  receiver.close()
})

test('events are listed and sent again, and signed with a new secret, beside a running gateway', async () => {
  expect((await cli.run(['webhooks', 'list'])).out).toBe('No webhooks were found in sandbox mode.\n')
  const id = await putEvent(store, accountId, { url: receiver.url(undefined, '/hook?token=canary') })
  await until(() => receiver.received.length === 1)
  let shown: Shown | undefined
  await until(async () => {
    shown = (await cli.json<{ data: Shown[] }>(['webhooks', 'list', '--account', 'demo'])).data[0]
    return shown?.state === 'delivered'
  })
  expect(shown).toMatchObject({ id, attempts: [{ status: 204, error: null }] })

  const { out } = await cli.run(['webhooks', 'list', '--state', 'delivered'])
  const [head, row] = out.trimEnd().split('\n')
  expect(head).toMatch(/^TIME +ACCOUNT +STATE +TYPE +ATTEMPTS +LAST +NEXT +HOST +TASK +ID$/)
  expect(row).toMatch(/demo +delivered +video\.generation\.succeeded +1 +204 +- +127\.0\.0\.1:\d+ +vid_\w+ +evt_\w+$/)
  expect(out).not.toContain('canary')

  expect(await cli.json(['webhooks', 'resend', id])).toMatchObject({ id, state: 'pending' })
  await until(() => receiver.received.length === 2)
  expect(receiver.received[1]?.headers['webhook-id']).toBe(id)

  const { secret } = await cli.json<{ secret: string }>(['webhooks', 'secret', 'demo'])
  expect(secret).toMatch(/^whsec_/)
  await cli.json(['webhooks', 'resend', id])
  await until(() => receiver.received.length === 3)
  const [, before, after] = receiver.received as [Received, Received, Received]
  const verify = ({ body, headers }: Received) => new Webhook(secret).verify(body, headers as Record<string, string>)
  expect(verify(after)).toEqual(JSON.parse(after.body))
  expect(() => verify(before)).toThrow('No matching signature')
  expect((await cli.run(['webhooks', 'secret', 'demo'])).out).toMatch(
    /^The new webhook secret of "demo"[^\n]*\n {2}whsec_/,
  )
})

test.each([
  { args: ['resend', 'evt_none'], says: 'there is no webhook "evt_none"; turnpike webhooks list shows their ids' },
  {
    args: ['secret', 'nobody'],
    says: 'there is no account "nobody" in sandbox mode; turnpike accounts list shows them',
  },
  { args: ['list', '--state', 'lost'], says: '--state takes one of pending, delivered, gone, given_up' },
  { args: ['list', '--limit', '0'], says: '--limit takes a number from 1 to 100' },
])('webhooks $args is refused in one line', async ({ args, says }) => {
  expect(await cli.run(['webhooks', ...args])).toMatchObject({ code: 1, out: '', err: `turnpike: ${says}\n` })
})
