import type { Clock } from '../base/clock.ts'
import type { JsonLimits } from '../base/json.ts'
import type { Model } from '../catalogue/model.ts'
import type { Parts } from '../flow/run.ts'
import type { KeyRing } from '../keys/key-ring.ts'
import { openaiChat } from '../wire/openai/chat.ts'
import { writeError } from '../wire/openai/errors.ts'
import { serveChat } from './chat.ts'
import { serveHealth, serveReadiness, type Readiness } from './health.ts'
import { serveModel, serveModelList } from './models.ts'
import type { Route } from './route.ts'

export type RouteParts = {
  readonly line: Parts
  readonly keyRing: KeyRing
  readonly models: () => ReadonlyMap<string, Model>
  readonly clock: Clock
  readonly json: JsonLimits
  readonly chatBodyBytesMax: number
  readonly readiness: Readiness
}

/** Every path of the public port. */
export function makeRoutes(parts: RouteParts): readonly Route[] {
  const chat = { ...parts, bodyBytesMax: parts.chatBodyBytesMax }
  return [
    { method: 'POST', path: '/v1/chat/completions', auth: 'key', writeError, serve: serveChat(chat, openaiChat) },
    { method: 'GET', path: '/v1/models', auth: 'key', writeError, serve: serveModelList(parts) },
    { method: 'GET', path: '/v1/models/{id}', auth: 'key', writeError, serve: serveModel(parts) },
    { method: 'GET', path: '/healthz', auth: 'open', writeError, serve: serveHealth },
    { method: 'GET', path: '/readyz', auth: 'open', writeError, serve: serveReadiness(parts.readiness) },
  ]
}
