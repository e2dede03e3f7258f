import type { Capability } from '../capabilities/capability.ts'
import type { Model } from '../catalogue/model.ts'
import { findModel } from '../flow/admit.ts'
import type { KeyRing, Principal } from '../keys/key-ring.ts'
import { bearerOf } from '../edge/credential.ts'
import type { Visit } from '../edge/route.ts'

type ModelParts = { keyRing: KeyRing; models: () => ReadonlyMap<string, Model> }

/** `GET /v1/models`: what the calling key may use, and nothing else. */
export function serveModelList({ keyRing, models }: ModelParts) {
  return async (visit: Visit): Promise<Response> => {
    const principal = await identify(keyRing, visit)
    const seen = [...models()].filter(([id]) => principal.mayUse(id))
    return json(visit, { object: 'list', data: seen.map(([id, model]) => show(id, model)) })
  }
}

/** `GET /v1/models/{id}` */
export function serveModel({ keyRing, models }: ModelParts) {
  return async (visit: Visit): Promise<Response> => {
    const principal = await identify(keyRing, visit)
    return json(visit, show(visit.id, findModel(models(), principal, visit.id)))
  }
}

function identify(keyRing: KeyRing, visit: Visit): Promise<Principal> {
  return keyRing.authenticate(bearerOf(visit.request), visit.address)
}

/** The common protocol's four fields, and what a client wants to know before it chooses. */
function show(id: string, model: Model) {
  const capabilities: readonly Capability[] = model.capabilities
  return { id, object: 'model', created: model.created, owned_by: model.vendor, capabilities }
}

function json(visit: Visit, body: unknown): Response {
  return Response.json(body, { headers: { 'x-request-id': visit.requestId } })
}
