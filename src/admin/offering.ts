import { z } from 'zod'
import type { HttpRequest } from '../base/http/request.ts'
import type { Channel, Channels } from '../upstream/channels.ts'
import { pageFields, pageOf, readQuery } from '../reports/query.ts'
import type { Call } from './call.ts'
import type { AdminParts } from './routes.ts'
import { showModel } from './show-model.ts'

const listed = z.strictObject(pageFields)

export function offeringCalls({ models, unsold, channels, tasks }: AdminParts) {
  return {
    /** `GET /admin/models`: models that are sold, with their prices, and models that are not, with the reason. */
    models: ({ visit }: Call) => {
      const sold = [...models().values()].map((model) => ({ ...showModel(model), sold: true }))
      const others = unsold().map(({ id, why }) => ({ id, sold: false, why }))
      return listById(visit.request, [...sold, ...others])
    },

    /** `GET /admin/channels`: the channels with their addresses and health, never with their keys. */
    channels: ({ visit }: Call) => {
      const current = channels()
      return listById(
        visit.request,
        current.all.map((channel) => ({
          ...showChannel(channel, current),
          // Counted by the node that answers, since it began.
          unknown_task_states: tasks.unknownStates.of(channel.id),
        })),
      )
    },
  }
}

function listById<T extends { readonly id: string }>(request: HttpRequest, all: readonly T[]) {
  const { limit, after } = readQuery(request, listed)
  // An `after` that does not exist is no mistake here: that entry may be gone since the previous page.
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
    base_url: baseUrl,
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
