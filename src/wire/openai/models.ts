import type { ListedModel } from '../../capabilities/listing.ts'

/** The common protocol's four fields, and what a client wants to know before it chooses. */
export function showModel({ id, created, vendor, capabilities }: ListedModel) {
  return { id, object: 'model', created, owned_by: vendor, capabilities }
}
