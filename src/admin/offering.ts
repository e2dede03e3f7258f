import { z } from 'zod'
import type { Channel, Channels } from '../upstream/channels.ts'
import { pageFields, pageOf, readQuery } from '../reports/query.ts'
import type { Call } from './call.ts'
import type { AdminParts } from './routes.ts'
import { showModel } from './show-model.ts'

const listed = z.strictObject(pageFields)

export function offeringCalls({ models, unsold, channels, tasks }: AdminParts) {
  return {
    /** `GET /admin/models`: what is sold and for how much, and what is not, and why. */
    models: ({ visit }: Call) => {
      const sold = [...models().values()].map((model) => ({ ...showModel(model), sold: true }))
      const others = unsold().map(({ id, why }) => ({ id, sold: false, why }))
      return listById(visit.request, [...sold, ...others])
    },

    /** `GET /admin/channels`: where vendors are reached, and how they are; never with which keys. */
    channels: ({ visit }: Call) => {
      const current = channels()
      return listById(
        visit.request,
        current.all.map((channel) => ({
          ...showChannel(channel, current),
          // Of the node that answers, since it began.
          unknown_task_states: tasks.oddWords.of(channel.id),
        })),
      )
    },
  }
}

function listById<T extends { readonly id: string }>(request: Request, all: readonly T[]) {
  const { limit, after } = readQuery(request, listed)
  // A place that is none is no mistake here: what stood there may be gone since the page before.
  const left = all.filter(({ id }) => after === undefined || id > after).toSorted((a, b) => (a.id < b.id ? -1 : 1))
  return pageOf(
    left,
    limit,
    (each) => each,
    ({ id }) => id,
  )
}

function showChannel(channel: Channel, channels: Channels) {
  const { id, vendor, baseUrl, credentials, weight, priority } = channel
  const resting = credentials.filter((credential) => channels.isResting({ channel, credential })).length
  return {
    id,
    vendor: vendor.id,
    base_url: withoutItsSecrets(baseUrl),
    weight,
    priority,
    health: healthOf(channel, channels, resting),
    credentials: { count: credentials.length, resting },
  }
}

function healthOf(channel: Channel, channels: Channels, resting: number): 'ok' | 'degraded' | 'resting' {
  if (resting === channel.credentials.length) return 'resting'
  return resting > 0 || channels.isFailing(channel) ? 'degraded' : 'ok'
}

/** Some proxies take a password, or a token in the query, as part of their address. */
function withoutItsSecrets(baseUrl: string): string {
  const { origin, pathname } = new URL(baseUrl)
  return `${origin}${pathname === '/' ? '' : pathname}`
}
