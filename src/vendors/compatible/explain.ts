import { GatewayError } from '../../base/errors.ts'
import { writeFieldPath } from '../../base/field-path.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { withoutSecrets } from '../../base/scrub.ts'
import { decodeUtf8 } from '../../base/utf8.ts'
import { indexOfBytes } from '../../wire/json-bytes.ts'
import { itemsIn, objectsIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { failureIn } from '../../wire/openai/chat-answer.ts'
import type { BadResponse, Verdict } from '../vendor.ts'
import { keyRefused, overRate, timedOut, tooLarge, vendorFailed } from '../verdicts.ts'

/** Codes by which vendors say, under several statuses, that the operator's account has run dry. */
const outOfCredit =
  /insufficient_quota|exceeded_current_quota|credit_balance|billing_hard_limit|Arrearage|AccountOverdue|ServiceOverdue|QuotaExceeded/i
// xAI refuses a key with a 400. From its beginning on: what is said of a request may repeat words of its own.
const refusedKey = /^(?:incorrect|invalid) api key\b/i
// One model that the account does not have, some of them under the status of a refused key: the others it has. So it is
// where it has had all that is free of one, or all that its owner allows.
const unknownModel =
  /model_not_found|ModelNotOpen|ServiceNotOpen|InvalidEndpoint|model_not_supported|Model\.AccessDenied|AccessDenied\.Unpurchased|FreeTierOnly|SetLimitExceeded|OperationDenied\.InvalidState/i
// OpenAI has no code for models that an organization has to be verified for, nor for a key that is for some kinds alone.
const closedModel = /organization must be verified to use the model|missing scopes: api\./i
// OpenRouter, xAI and others refuse what was said with the status of a refused key, which a customer must not lay to rest.
// What they say of an account that is flagged or violates their terms is the operator's affair still.
const refusedWords =
  /\brequires moderation|\b(?:input|prompt|content|message|request)s? (?:was|were|is|are|has been) (?:flagged|moderated|blocked)|content[ _]?(?:policy|filter)|content violates|safety_check|guardrail|prompt injection/i

// A thought that OpenAI encrypted for another account of the operator's, which that one can read.
const anothersThought = /invalid_encrypted_content/

/**
 * A common-protocol vendor's refusal. What is the request's fault passes on as it came; what is the operator's fault
 * (a bad key, no credit, a model the account does not have) is ours to answer for.
 */
export function explain(response: BadResponse, secrets: { baseUrl: string; credential: string }): Verdict {
  const { status } = response
  const { error, message: said } = readRefusal(response.body)
  const code = `${textOf(error?.['code'])} ${textOf(error?.['type'])}`

  const isOfWords = status === 403 && refusedWords.test(`${code} ${said}`)
  const isOfKey = [401, 402, 403].includes(status) || (status === 400 && refusedKey.test(said))
  // Only there: what is said of a request may repeat words of its own.
  const isOfModel = unknownModel.test(code) || (isOfKey && closedModel.test(said))
  if (outOfCredit.test(code) || (isOfKey && !isOfWords && !isOfModel)) return keyRefused()
  if (status === 404 || isOfModel) return vendorFailed()
  if (status === 429) return overRate(response)
  if (status === 408 || status === 504) return timedOut()
  if (status >= 400 && status < 500 && (error !== undefined || said !== '')) {
    const body = withoutSecrets(response.body, secrets)
    const message = withoutSecrets(said || 'The request was refused.', secrets)
    // A body in a shape of the vendor's own is put into words of the common protocol; its status and message stay.
    const protocol = textIn(error?.['message']) === '' ? 'none' : 'openai'
    return {
      error: new GatewayError('upstream-rejected', message, { refusal: { protocol, status, body } }),
      retryable: anothersThought.test(code),
    }
  }
  return status === 413 ? tooLarge() : vendorFailed()
}

// Longer than any refusal: what has a picture or many vectors in it is not read once more to look for one.
const refusalBytesMax = 65_536
const errorKey = Buffer.from('"error"')

/** A vendor may say no under a good status (OpenRouter): the one that it has elsewhere, where its words tell it. */
export function statusInside(body: Uint8Array): number {
  const mayRefuse = body.length <= refusalBytesMax && indexOfBytes(body, errorKey) !== -1
  const json = mayRefuse ? parseLoosely(decodeUtf8(body)) : undefined
  const failure = isObject(json) && itemsIn(json['data']).length === 0 ? failureIn(json) : undefined
  return failure?.details.inside?.status ?? 200
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/** The common protocol's error object where there is one; else only words: in `message` or `detail`, or xAI's `error` as a text. */
function readRefusal(body: string): { error: JsonObject | undefined; message: string } {
  const json = parseLoosely(body)
  if (!isObject(json)) return { error: undefined, message: '' }
  const { error, message, detail } = json
  if (isObject(error)) return { error, message: wordsIn(error['message']) }
  return { error: undefined, message: textOf(error) || wordsIn(message) || wordsIn(detail) }
}

/** A sentence, alone or inside of an object; or a list of fields with what is wrong with each, as FastAPI writes it (Mistral). */
function wordsIn(value: Json | undefined): string {
  const said = isObject(value) ? (value['detail'] ?? value['message']) : value
  return Array.isArray(said) ? objectsIn(said).map(writeField).join('; ') : textOf(said)
}

function writeField({ loc, msg }: JsonObject): string {
  const path = itemsIn(loc).filter((step) => typeof step === 'string' || typeof step === 'number')
  const field = writeFieldPath(path[0] === 'body' ? path.slice(1) : path)
  return field === '' ? textIn(msg) : `${field}: ${textIn(msg)}`
}
