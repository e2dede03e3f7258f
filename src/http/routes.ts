import type { Artifacts } from '../artifacts/artifacts.ts'
import type { Clock } from '../base/clock.ts'
import type { JsonLimits } from '../base/json.ts'
import type { Model } from '../catalogue/model.ts'
import type { Parts } from '../flow/run.ts'
import type { Store } from '../store/open.ts'
import { chatJob } from '../flow/chat/chat.ts'
import type { Count } from '../flow/chat/count.ts'
import { bearerOf, bearerOrApiKeyOf } from '../edge/credential.ts'
import { anthropicChat, anthropicCount } from '../wire/anthropic/chat.ts'
import { writeError as writeMessagesError } from '../wire/anthropic/errors.ts'
import { openaiChat } from '../wire/openai/chat.ts'
import { writeError } from '../wire/openai/errors.ts'
import { serveArtifact, writeArtifactError } from './artifacts.ts'
import { serveJob } from './serve.ts'
import { serveCountTokens } from './count-tokens.ts'
import { serveHealth, serveReadiness, type Readiness } from './health.ts'
import { serveModel, serveModelList } from './models.ts'
import { serveContract, serveLanding, serveReference } from './openapi/pages.ts'
import type { Route as EdgeRoute } from '../edge/route.ts'
import type { OperationId } from './openapi/operations.ts'
import { serveBalance, serveUsage, type UsageParts } from './usage.ts'

/** A line of the route table, with what the contract says about it; a route without is not part of the contract. */
export type Route = EdgeRoute & { readonly docs?: OperationId }

export type RouteParts = {
  readonly line: Parts
  readonly store: Store
  readonly settle: UsageParts['settle']
  readonly models: () => ReadonlyMap<string, Model>
  readonly artifacts: Artifacts
  readonly clock: Clock
  readonly json: JsonLimits
  readonly chatBodyBytesMax: number
  readonly count: Count
  readonly readiness: Readiness
}

// Who may call a route is said in each line; so far, almost every path shows errors alike.
const keyed = { auth: 'key', writeError } as const
const open = { auth: 'open', writeError } as const
const native = { auth: 'key', writeError: writeMessagesError } as const
// The signature in the link is the credential.
const signed = { auth: 'open', writeError: writeArtifactError } as const

/** Every path of the public port. */
export function makeRoutes(parts: RouteParts): readonly Route[] {
  const chatting = { ...parts, bodyBytesMax: parts.chatBodyBytesMax }
  const chat = serveJob(chatting, { job: chatJob(openaiChat), credentialOf: bearerOf })
  const messages = serveJob(chatting, {
    job: chatJob(anthropicChat),
    credentialOf: bearerOrApiKeyOf,
    requestIdHeader: 'request-id',
  })
  const countTokens = serveCountTokens(chatting, anthropicCount)
  return [
    { ...keyed, method: 'POST', path: '/v1/chat/completions', docs: 'createChatCompletion', serve: chat },
    { ...native, method: 'POST', path: '/v1/messages', docs: 'createMessage', serve: messages },
    { ...native, method: 'POST', path: '/v1/messages/count_tokens', docs: 'countMessageTokens', serve: countTokens },
    { ...keyed, method: 'GET', path: '/v1/models', docs: 'listModels', serve: serveModelList(parts) },
    { ...keyed, method: 'GET', path: '/v1/models/{id}', docs: 'retrieveModel', serve: serveModel(parts) },
    { ...keyed, method: 'GET', path: '/v1/usage', docs: 'getUsage', serve: serveUsage(parts) },
    { ...keyed, method: 'GET', path: '/v1/balance', docs: 'getBalance', serve: serveBalance(parts) },
    { ...signed, method: 'GET', path: '/artifacts/{id}', serve: serveArtifact(parts) },
    // The first thing that Anthropic's command-line tool asks of its base address, to warm the connection up.
    { ...open, method: 'GET', path: '/api/hello', serve: serveHealth },
    { ...open, method: 'GET', path: '/healthz', serve: serveHealth },
    { ...open, method: 'GET', path: '/readyz', serve: serveReadiness(parts.readiness) },
    { ...open, method: 'GET', path: '/openapi.json', serve: serveContract },
    { ...open, method: 'GET', path: '/docs', serve: serveReference },
    { ...open, method: 'GET', path: '/', serve: serveLanding },
  ]
}
