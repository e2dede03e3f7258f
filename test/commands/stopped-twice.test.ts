import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import type { Gateway } from '../../src/gateway.ts'
import { until } from '../support/gateway.ts'
import { openNow } from '../support/leftovers.ts'
import { startReceiver } from '../support/receiver.ts'
import { chat, openSite, post, type Site } from '../support/site.ts'

// A stop gives load balancers two seconds; machines that test are busy.
setDefaultTimeout(120_000)

let site: Site
let gateway: Gateway
beforeEach(async () => {
  site = await openSite('sqlite')
  gateway = await site.start()
})
afterEach(() => site.remove())

const drainMs = 600_000

/** The second stop, after which every file is closed. */
async function stopAgain(): Promise<void> {
  await gateway.close()
  expect(openNow(site.folder).files).toEqual([])
}

async function nextWorks(): Promise<void> {
  const next = await site.start()
  expect(await chat(next)).toBe(200)
  await next.close()
  await site.checkBooks()
}

/** An order of a video that its vendor takes fifty seconds to answer. */
function slowVideo(): Promise<Response | undefined> {
  const video = { model: 'minimax-hailuo-02', input: { prompt: 'A fox. sandbox:delay=50000' } }
  return post(gateway, '/v1/videos/generations', video).catch(() => undefined)
}

const tasks = () => site.look((store) => store.db.selectFrom('task').select(['state', 'in_doubt']).execute())

test('a second stop cuts the stream that the first lets run, and both stops finish', async () => {
  const messages = [{ role: 'user', content: 'sandbox:endless sandbox:pace=20' }]
  const endless = await post(gateway, '/v1/chat/completions', { model: 'gpt-4o-mini', stream: true, messages })
  const first = gateway.close({ drainMs })
  await stopAgain()
  await first
  await endless.body?.cancel().catch(() => {})
  await nextWorks()
})

/** A finished video whose webhook is being sent to a receiver that does not answer. */
async function untold() {
  const receiver = await startReceiver('silence')
  const ordered = await post(gateway, '/v1/videos/generations', {
    model: 'wan2.6-t2v',
    duration: 5,
    resolution: '720p',
    input: { prompt: 'A tram.' },
    webhook_url: receiver.url('127.0.0.1'),
  })
  expect(ordered.status).toBe(202)
  await until(() => receiver.received.length === 1)
  return {
    /** Had the stop waited for the receiver, a failed attempt would be on record. */
    async isGivenBack() {
      const attempts = await site.look((store) => store.db.selectFrom('webhook_attempt').select('event_id').execute())
      expect(attempts).toEqual([])
      receiver.reply(204)
      receiver.release()
      await nextWorks()
      receiver.close()
    },
  }
}

test('a second stop gives up a webhook delivery without recording an attempt', async () => {
  const webhook = await untold()
  const first = gateway.close({ drainMs })
  const isClosed = () =>
    fetch(`${gateway.adminUrl}/healthz`, { keepalive: false }).then(
      () => false,
      () => true,
    )
  await until(isClosed)
  await stopAgain()
  await first
  await webhook.isGivenBack()
})

test('a second stop during the notice gives up a delivery while another video is being ordered', async () => {
  const webhook = await untold()
  const asked = slowVideo()
  await until(async () => (await tasks()).length === 2)
  const first = gateway.close({ drainMs })
  await stopAgain()
  await first
  await asked
  await webhook.isGivenBack()
})

test('a second stop does not wait for a vendor to accept a video, and the task is kept in doubt', async () => {
  const asked = slowVideo()
  await until(async () => (await tasks()).length === 1)
  const first = gateway.close({ drainMs })
  const startedAt = performance.now()
  await stopAgain()
  await first
  expect(performance.now() - startedAt).toBeLessThan(30_000) // of the vendor's fifty
  await asked
  expect(await tasks()).toEqual([{ state: 'creating', in_doubt: true }])
})
