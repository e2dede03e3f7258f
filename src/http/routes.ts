import type { Artifacts } from '../artifacts/artifacts.ts'
import type { IsOwnLink } from '../base/untrusted-url.ts'
import type { FileSettings } from '../config/schema.ts'
import { chatJob } from '../flow/chat/chat.ts'
import { embeddingsJob } from '../flow/media/embeddings.ts'
import { speechJob } from '../flow/speech/speech.ts'
import type { Mp3Encoders } from '../media/mp3.ts'
import type { Count } from '../flow/chat/count.ts'
import { bearerOf, bearerOrApiKeyOf } from '../edge/credential.ts'
import { anthropicChat, anthropicCount } from '../wire/anthropic/chat.ts'
import { writeError as writeMessagesError } from '../wire/anthropic/errors.ts'
import { openaiChat } from '../wire/openai/chat.ts'
import { writeEitherError } from '../wire/native/errors.ts'
import { openaiEmbeddings } from '../wire/openai/embeddings.ts'
import { writeError, writeErrorWithPlain402 } from '../wire/openai/errors.ts'
import { openaiSpeech } from '../wire/openai/speech.ts'
import { writeSpeechError } from '../wire/openai/speech-errors.ts'
import { responsesChat } from '../wire/responses/chat.ts'
import { writeError as writeResponsesError } from '../wire/responses/errors.ts'
import { serveArtifact, writeArtifactError } from './artifacts.ts'
import { serveJob } from './serve.ts'
import { serveCountTokens } from './count-tokens.ts'
import { editsEndpoint, imagesEndpoint } from './images.ts'
import { serveHealth, serveReadiness, type Readiness } from './health.ts'
import { serveModel, serveModelList } from './models.ts'
import { serveContract, serveLanding, serveReference } from './openapi/pages.ts'
import { serveResponseNotFound, serveNothingBelow } from './responses.ts'
import type { Route as EdgeRoute } from '../edge/route.ts'
import type { OperationId } from './openapi/operations.ts'
import { serveBalance, serveUsage, type UsageParts } from './usage.ts'
import {
  serveVideo,
  serveVideoCallback,
  serveVideoCancel,
  serveVideoList,
  serveVideoOrder,
  type VideoRouteParts,
} from './videos.ts'

/** A line of the route table. `docs` names its entry in the contract; a route without is not part of the contract. */
export type Route = EdgeRoute & { readonly docs?: OperationId }

/** The limits have their names from the settings; which path takes which of them is said once, below. */
export type RouteParts = FileSettings['limits'] &
  UsageParts &
  VideoRouteParts & {
    readonly artifacts: Artifacts
    readonly isOwnLink: IsOwnLink
    /**
     * Where clients find us. `namedUrl` is the same where the operator has set it; otherwise `publicUrl` is a guess.
     */
    readonly publicUrl: string
    readonly namedUrl: string | undefined
    readonly mp3: Mp3Encoders
    readonly count: Count
    readonly readiness: Readiness
  }

// Each line of the table has one of these, which says who may call the route and how its errors look.
const keyed = { auth: 'key', writeError } as const
const open = { auth: 'open', writeError } as const
const messaging = { auth: 'key', writeError: writeMessagesError } as const
const responding = { auth: 'key', writeError: writeResponsesError } as const
// Until the form of an image request is known, errors have the shapes of both forms.
const imaging = { auth: 'key', writeError: writeEitherError } as const
const editing = { auth: 'key', writeError: writeErrorWithPlain402 } as const
const speaking = { auth: 'key', writeError: writeSpeechError } as const
// The signature in the link is the credential.
const signed = { auth: 'open', writeError: writeArtifactError } as const

// An input may be a million tokens, each a number. The bound is higher, so that the error for more names the field.
const embeddingItemsMax = 1_500_000

/** Every path of the public port. */
export function makeRoutes(parts: RouteParts): readonly Route[] {
  const chatting = { ...parts, bodyBytesMax: parts.chatBodyBytesMax }
  const chat = serveJob(chatting, { job: chatJob(openaiChat), credentialOf: bearerOf })
  const messages = serveJob(chatting, {
    job: chatJob(anthropicChat),
    credentialOf: bearerOrApiKeyOf,
    requestIdHeader: 'request-id',
  })
  const responses = serveJob(chatting, { job: chatJob(responsesChat), credentialOf: bearerOf })
  const countTokens = serveCountTokens(chatting, anthropicCount)
  const images = serveJob({ ...parts, bodyBytesMax: parts.imagesBodyBytesMax }, imagesEndpoint(parts))
  const edits = serveJob({ ...parts, bodyBytesMax: parts.editsBodyBytesMax }, editsEndpoint(parts))
  const embeddings = serveJob(
    {
      ...parts,
      bodyBytesMax: parts.embeddingsBodyBytesMax,
      json: { ...parts.json, itemsMax: embeddingItemsMax },
    },
    { job: embeddingsJob(openaiEmbeddings), credentialOf: bearerOf },
  )
  const videoParts = { ...parts, bodyBytesMax: parts.videosBodyBytesMax }
  const speech = serveJob(parts, { job: speechJob(openaiSpeech, parts.mp3), credentialOf: bearerOf })
  return [
    {
      ...keyed,
      replaces: ['/completions', '/v1/edits'],
      method: 'POST',
      path: '/v1/chat/completions',
      docs: 'createChatCompletion',
      serve: chat,
    },
    { ...responding, method: 'POST', path: '/v1/responses', docs: 'createResponse', serve: responses },
    { ...open, method: 'GET', path: '/v1/responses/{id}', serve: serveResponseNotFound },
    { ...open, method: 'DELETE', path: '/v1/responses/{id}', serve: serveResponseNotFound },
    { ...open, method: 'POST', path: '/v1/responses/{id}', serve: serveNothingBelow },
    { ...open, method: 'POST', path: '/v1/responses/{id}/cancel', serve: serveResponseNotFound },
    { ...open, method: 'GET', path: '/v1/responses/{id}/input_items', serve: serveResponseNotFound },
    {
      ...messaging,
      speaksBelow: true,
      replaces: ['/complete'],
      method: 'POST',
      path: '/v1/messages',
      docs: 'createMessage',
      serve: messages,
    },
    { ...messaging, method: 'POST', path: '/v1/messages/count_tokens', docs: 'countMessageTokens', serve: countTokens },
    { ...keyed, method: 'POST', path: '/v1/embeddings', docs: 'createEmbedding', serve: embeddings },
    { ...speaking, method: 'POST', path: '/v1/audio/speech', docs: 'createSpeech', serve: speech },
    { ...imaging, method: 'POST', path: '/v1/images/generations', docs: 'createImage', serve: images },
    { ...editing, method: 'POST', path: '/v1/images/edits', docs: 'createImageEdit', serve: edits },
    {
      ...keyed,
      method: 'POST',
      path: '/v1/videos/generations',
      docs: 'createVideo',
      serve: serveVideoOrder(videoParts),
    },
    { ...keyed, method: 'GET', path: '/v1/videos/generations', docs: 'listVideos', serve: serveVideoList(videoParts) },
    {
      ...keyed,
      method: 'GET',
      path: '/v1/videos/generations/{id}',
      docs: 'retrieveVideo',
      serve: serveVideo(videoParts),
    },
    {
      ...keyed,
      method: 'DELETE',
      path: '/v1/videos/generations/{id}',
      docs: 'cancelVideo',
      serve: serveVideoCancel(videoParts),
    },
    {
      ...keyed,
      replaces: ['/v1/engines'],
      method: 'GET',
      path: '/v1/models',
      docs: 'listModels',
      serve: serveModelList(parts),
    },
    { ...keyed, method: 'GET', path: '/v1/models/{id}', docs: 'retrieveModel', serve: serveModel(parts) },
    { ...keyed, method: 'GET', path: '/v1/usage', docs: 'getUsage', serve: serveUsage(parts) },
    { ...keyed, method: 'GET', path: '/v1/balance', docs: 'getBalance', serve: serveBalance(parts) },
    // The token in the path is the credential, and the only part of the call that is believed.
    { ...open, method: 'POST', path: '/callbacks/video/{id}', serve: serveVideoCallback(parts) },
    { ...signed, method: 'GET', path: '/artifacts/{id}', serve: serveArtifact(parts) },
    // The first thing that Anthropic's command-line tool asks of its base address, to warm the connection up.
    { ...open, method: 'GET', path: '/api/hello', serve: serveHealth },
    { ...open, method: 'GET', path: '/healthz', serve: serveHealth },
    { ...open, method: 'GET', path: '/readyz', serve: serveReadiness(parts.readiness) },
    { ...open, method: 'GET', path: '/openapi.json', serve: serveContract(parts.namedUrl) },
    { ...open, method: 'GET', path: '/docs', serve: serveReference(parts.publicUrl) },
    { ...open, method: 'GET', path: '/', serve: serveLanding },
  ]
}
