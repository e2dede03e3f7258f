import type { Capability } from '../capabilities/capability.ts'
import type { Model } from '../catalogue/model.ts'
import { findModel } from '../flow/admit.ts'
import type { Parts } from '../flow/run.ts'
import { serveKeyed } from './keyed.ts'

type ModelParts = { line: Parts; models: () => ReadonlyMap<string, Model> }

/** `GET /v1/models`: what the calling key may use, and nothing else. */
export function serveModelList({ line, models }: ModelParts) {
  return serveKeyed(line, (_visit, principal) => {
    const seen = [...models()].filter(([id]) => principal.mayUse(id))
    return { object: 'list', data: seen.map(([id, model]) => show(id, model)) }
  })
}

/** `GET /v1/models/{id}` */
export function serveModel({ line, models }: ModelParts) {
  return serveKeyed(line, ({ id }, principal) => show(id, findModel(models(), principal, id)))
}

/** The common protocol's four fields, and what a client wants to know before it chooses. */
function show(id: string, model: Model) {
  const capabilities: readonly Capability[] = model.capabilities
  return { id, object: 'model', created: model.created, owned_by: model.vendor, capabilities }
}
