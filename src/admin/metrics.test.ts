import { expect, test } from 'bun:test'
import { eachEngine } from '../../test/support/engines.ts'
import { readExposition } from '../../test/support/exposition.ts'
import { handTimers } from '../../test/support/hand-timers.ts'
import { fundedAccount } from '../../test/support/ledger.ts'
import { putAccount, putEvent } from '../../test/support/outbox.ts'
import { put, recorded } from '../../test/support/stored-tasks.ts'
import { Closing } from '../base/closing.ts'
import { asResponse } from '../base/http/reply.ts'
import { openTelemetry } from '../telemetry/telemetry.ts'
import type { Call } from './call.ts'
import { metricCalls, type MetricParts } from './metrics.ts'

const minute = 60_000

eachEngine('a scrape of the metrics', (open) => {
  test('a scrape shows open tasks, tasks in doubt, waiting webhooks and how long they are overdue', async () => {
    const now = Date.now()
    const store = await open({ clock: { now: () => now } })
    const closing = new Closing(['telemetry'])
    // A node that serves nothing, since only the values from the database are tested here.
    const { show } = metricCalls({
      store,
      mode: 'sandbox',
      telemetry: openTelemetry({ version: '0.0.0', timers: handTimers(), closing }),
      channels: () => ({ all: [] }),
      models: () => new Map(),
      books: { billing: { open: 0 }, unposted: () => 0 },
      isDraining: () => false,
    } as unknown as MetricParts)
    const scrape = async () => {
      const reply = await show({ visit: { responseHeaders: {} } } as unknown as Call)
      const shown = readExposition(await asResponse(reply).text())
      return {
        open: shown.all('turnpike_video_tasks_open'),
        inDoubt: shown.value('turnpike_video_tasks_in_doubt'),
        pollLag: shown.value('turnpike_video_poll_lag_seconds'),
        webhooks: shown.value('turnpike_webhooks_waiting'),
        webhookLag: shown.value('turnpike_webhook_lag_seconds'),
      }
    }
    const none = { creating: 0, submitted: 0, running: 0 }
    expect(await scrape()).toEqual({ open: none, inDoubt: 0, pollLag: 0, webhooks: 0, webhookLag: 0 })

    await fundedAccount(store)
    const dueFor = (ms: number) => ({ claim: { owner: 'node_a', until: now - ms } })
    const doubted = await recorded(store, dueFor(3 * minute))
    await put(store, doubted.id, { in_doubt: true })
    const running = await recorded(store, dueFor(minute))
    await put(store, running.id, { state: 'running' })
    await recorded(store, dueFor(-minute))
    const event = { url: 'https://customer.example/hook', at: now - 2 * minute }
    await putEvent(store, await putAccount(store), event)
    const some = { creating: 2, submitted: 0, running: 1 }
    expect(await scrape()).toEqual({ open: some, inDoubt: 1, pollLag: 180, webhooks: 1, webhookLag: 120 })
    await closing.close()
  })
})
