import { Reply } from '../base/http/reply.ts'
import { within } from '../base/within.ts'
import type { Model } from '../catalogue/model.ts'
import { countWaitingEvents } from '../store/outbox.ts'
import type { Store } from '../store/open.ts'
import type { Mode } from '../store/schema.ts'
import { countWatchedTasks } from '../store/task-claims.ts'
import type { Tasks } from '../tasks/tasks.ts'
import type { StoredStanding } from '../telemetry/standing.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'
import type { Channels } from '../upstream/channels.ts'
import type { Call } from './call.ts'

export type MetricParts = {
  readonly store: Store
  readonly mode: Mode
  readonly channels: () => Channels
  readonly tasks: Pick<Tasks, 'unknownStates'>
  readonly models: () => ReadonlyMap<string, Model>
  readonly telemetry: Pick<Telemetry, 'scrape'>
  readonly books: { readonly billing: { readonly open: number }; unposted(): number }
  readonly isDraining: () => boolean
}

// Scrapers usually wait ten seconds. Without the database's values they still get all others.
const storedMsMax = 2_000

export function metricCalls(parts: MetricParts) {
  const { store, mode } = parts

  return {
    /** `GET /metrics`: what happened on this node, and its present state, in the format of Prometheus. */
    show: async ({ visit }: Call) => {
      // A database that is away or hangs must not keep a scraper from the other metrics.
      const stored = await within(storedMsMax, lookUp()).catch(() => undefined)
      const { text, contentType } = await parts.telemetry.scrape({
        mode,
        stored,
        isDraining: parts.isDraining(),
        models: parts.models().size,
        openHolds: parts.books.billing.open,
        unposted: parts.books.unposted(),
        unknownStates: parts
          .channels()
          .all.filter(({ vendor }) => vendor.video !== undefined)
          .map(({ id }) => ({ channel: id, count: parts.tasks.unknownStates.of(id).count })),
      })
      return new Reply(200, { ...visit.responseHeaders, 'content-type': contentType }, Buffer.from(text))
    },
  }

  async function lookUp(): Promise<StoredStanding> {
    const now = store.now()
    const [watched, events] = await Promise.all([
      countWatchedTasks(store.db, { now, mode }),
      countWaitingEvents(store.db, { now, mode }),
    ])
    const open = { creating: 0, submitted: 0, running: 0 }
    let tasksInDoubt = 0
    let pollLagMs = 0
    for (const { state, inDoubt, count, dueAt } of watched) {
      // Tasks that are over and still watched are not open: no client waits for them.
      if (state === 'creating' || state === 'submitted' || state === 'running') open[state] += count
      if (inDoubt) tasksInDoubt += count
      if (dueAt !== null) pollLagMs = Math.max(pollLagMs, now - dueAt)
    }
    const webhookLagMs = events.dueAt === null ? 0 : now - events.dueAt
    return { tasks: open, tasksInDoubt, pollLagMs, webhooks: events.count, webhookLagMs }
  }
}
