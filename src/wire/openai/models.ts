import type { ListedModel } from '../../capabilities/listing.ts'

/** The common protocol's four fields, and the capabilities, which a client needs to choose a model. */
export function showModel({ id, created, vendor, capabilities }: ListedModel) {
  return { id, object: 'model', created, owned_by: vendor, capabilities }
}
