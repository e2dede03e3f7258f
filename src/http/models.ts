import type { Reply } from '../base/http/reply.ts'
import type { HttpRequest } from '../base/http/request.ts'
import type { ListedModel } from '../capabilities/listing.ts'
import type { Model, ModelsOnOffer } from '../catalogue/model.ts'
import { showPrices } from '../catalogue/show-prices.ts'
import { bearerOf, bearerOrApiKeyOf } from '../edge/credential.ts'
import type { Visit } from '../edge/route.ts'
import { queryOf } from '../edge/target.ts'
import { findModel } from '../flow/find-model.ts'
import type { Line } from '../flow/run.ts'
import type { Principal } from '../keys/key-ring.ts'
import { writeError as writeMessagesError } from '../wire/anthropic/errors.ts'
import { listMessagesModels, showMessagesModel } from '../wire/anthropic/models.ts'
import { showModel } from '../wire/openai/models.ts'
import { serveKeyed } from './keyed.ts'

type ModelParts = {
  readonly line: Line
  readonly models: () => ModelsOnOffer
}

/** `GET /v1/models`: what the calling key may use, and nothing else. */
export function serveModelList({ line, models }: ModelParts) {
  return serveEither(line, ({ request }, principal) => {
    const seen = [...models()].filter(([id]) => principal.mayUse(id))
    if (!speaksMessages(request)) {
      return { object: 'list', data: seen.map(([id, model]) => withPrices(id, model)) }
    }
    const facts = seen.map(([id, model]) => factsOf(id, model))
    return listMessagesModels(facts, queryOf(request))
  })
}

/** `GET /v1/models/{id}` */
export function serveModel({ line, models }: ModelParts) {
  return serveEither(line, ({ request, id }, principal) => {
    const model = findModel(models(), principal, id)
    return speaksMessages(request) ? showMessagesModel(factsOf(id, model)) : withPrices(id, model)
  })
}

/** Answers in the form of the client's protocol, with its errors and its header for the request id. */
function serveEither(line: Line, work: (visit: Visit, principal: Principal) => unknown) {
  const serve = serveKeyed(line, credentialOf, work)
  return (visit: Visit): Promise<Reply> => {
    if (speaksMessages(visit.request)) {
      visit.speak(writeMessagesError)
      visit.responseHeaders['request-id'] = visit.requestId
    }
    return serve(visit)
  }
}

/** What the customer pays: never what the vendor charges. */
function withPrices(id: string, model: Model) {
  return { ...showModel(factsOf(id, model)), prices: showPrices(model.prices) }
}

/** Clients of that protocol send this header with every request, and only with it is `x-api-key` accepted. */
export function speaksMessages(request: HttpRequest): boolean {
  return request.headers.has('anthropic-version')
}

function credentialOf(request: HttpRequest): string | undefined {
  return speaksMessages(request) ? bearerOrApiKeyOf(request) : bearerOf(request)
}

function factsOf(id: string, model: Model): ListedModel {
  const { capabilities, created, vendor, contextTokens, outputTokensMax, end } = model
  const ends = end === undefined ? {} : { endDate: end.date }
  return { id, capabilities, created, vendor, contextTokens, outputTokensMax, ...ends }
}
