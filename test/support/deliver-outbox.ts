import { makeLog } from '../../src/base/log.ts'
import { openStore } from '../../src/store/open.ts'
import { openWebhooks } from '../../src/tasks/webhooks/webhooks.ts'
import type { Place } from './engines.ts'
import { standingClock } from './movable-clock.ts'

/** A node that only delivers webhooks, until it is killed: `place aheadMs secret`. */
const [place = '{}', aheadMs = '0', secret = ''] = process.argv.slice(2)
// Time stands still, so that retries are left to the next node, however long this one lives.
const clock = standingClock()
clock.advance(Number(aheadMs))
const store = await openStore({ ...(JSON.parse(place) as Place), clock })
openWebhooks({
  store,
  mode: 'sandbox',
  node: `node-${process.pid}`,
  secret: Buffer.from(secret),
  settings: { allowPrivate: false },
  clock,
  log: makeLog({ level: 'silent' }),
})
// The gateway's timers do not keep a process alive.
setInterval(() => {}, 1_000)
