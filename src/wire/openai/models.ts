import type { ListedModel } from '../../capabilities/listing.ts'

/** The common protocol's fields, and the capabilities, which a client needs to choose a model. */
export function showModel({ id, created, vendor, capabilities, endDate }: ListedModel) {
  const ends = endDate === undefined ? {} : { shutdown_date: endDate }
  return { id, object: 'model', created, owned_by: vendor, capabilities, ...ends }
}
