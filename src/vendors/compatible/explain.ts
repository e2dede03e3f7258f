import { writeFieldPath } from '../../base/field-path.ts'
import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import { withoutSecrets } from '../../base/scrub.ts'
import { decodeUtf8 } from '../../base/utf8.ts'
import { indexOfBytes } from '../../wire/json-bytes.ts'
import { itemsIn, objectIn, objectsIn, parseLoosely, textIn } from '../../wire/loose.ts'
import { failureIn } from '../../wire/openai/errors.ts'
import { explain as explainGoogle } from '../google/explain.ts'
import type { BadResponse, Secrets, Verdict } from '../vendor.ts'
import {
  credentialRefused,
  isAboutWay,
  isOfFirewall,
  overRate,
  hiddenRefusalBytesMax,
  rejected,
  timedOut,
  tooLarge,
  vendorFailed,
} from '../verdicts.ts'

/** Vendors' codes for an account of the operator that is closed or out of credit; they come with several statuses. */
const outOfCredit =
  /insufficient_(?:quota|balance)|exceeded_current_quota|credit_balance|billing_hard_limit|billing_not_active|access_terminated|Arrearage|AccountOverdue|ServiceOverdue|QuotaExceeded|\b1113\b/i
// Fireworks says this with a 412, xAI with a 429, and Groq with a 400. Matched from the beginning, as a refused key is.
const closedAccount =
  /^(?:account \S+ is suspended|your team \S+ has (?:either )?used all available credits|organization has been restricted)/i
// xAI refuses a key with a 400. Matched from the beginning, because other messages may quote the client's own words.
const refusedKey = /^(?:incorrect|invalid) api key\b/i
// The account lacks one model and has others, although some vendors say so with the status of a refused key. The same
// holds for a model whose free quota, or the limit that the account's owner set, is used up.
const unknownModel =
  /model_not_found|invalid_model|ModelNotOpen|ServiceNotOpen|InvalidEndpoint|model_not_supported|Model\.AccessDenied|AccessDenied\.Unpurchased|FreeTierOnly|SetLimitExceeded|OperationDenied\.InvalidState|model_permission_blocked|model_terms_required|model_access_denied|model_not_available|\b(?:1211|1311|20012|30003)\b/i
// Said without a code: by OpenAI of a model that needs a verified organization, and to a key limited to some kinds of
// models; by Runway and Ollama; and by Bifrost and New API, which may stand in front of a vendor.
const closedModel =
  /organization must be verified to use the model|missing scopes: api\.|^model variant \S+ is not available|this model requires a subscription|is not allowed for this virtual key|无权访问模型/i
// OpenRouter, xAI and others refuse a prompt with the status of a refused key, but no customer's prompt may rest the
// credential. What they say of an account that is flagged or violates their terms stays the operator's affair.
const refusedWords =
  /\brequires moderation|\b(?:input|prompt|content|message|request)s? (?:was|were|is|are|has been) (?:flagged|moderated|blocked)|content[ _]?(?:policy|filter)|content violates|safety_check|guardrail|prompt injection/i

// Reasoning that OpenAI encrypted for another account of the operator; a channel of that account can still read it.
const foreignReasoning = /invalid_encrypted_content/

/**
 * Judges the refusal of a vendor of the common protocol. What is the request's fault passes on as it came; what is the
 * operator's fault (a bad key, no credit, a model the account lacks) is answered as an upstream failure.
 */
export function explain(response: BadResponse, secrets: Secrets): Verdict {
  const { status } = response
  if (isOfFirewall(response)) return vendorFailed()
  const json = parseLoosely(response.body)
  // Google's own endpoint for this protocol writes its refusals in a list, in the shape of its other endpoints.
  if (Array.isArray(json)) return explainGoogle(response, secrets)
  const { error, message: said } = readRefusal(json, response.body)
  const { code: word, type } = error ?? objectIn(json)
  const code = `${textOf(word)} ${textOf(type)}`

  const isOfWords = status === 403 && refusedWords.test(`${code} ${said}`)
  const isOfKey = [401, 402, 403].includes(status) || (status === 400 && refusedKey.test(said))
  // The message is matched only beside the status of a refused key, because others may quote the client's own words.
  const isOfModel = unknownModel.test(code) || (isOfKey && closedModel.test(said))
  const isOfAccount = outOfCredit.test(code) || closedAccount.test(said)
  if (isOfAccount || (isOfKey && !isOfWords && !isOfModel)) return credentialRefused()
  if (status === 404 || isOfModel || isAboutWay(status)) return vendorFailed()
  if (status === 429) return overRate(response)
  if (status === 408 || status === 504) return timedOut()
  if (status >= 400 && status < 500 && (error !== undefined || said !== '')) {
    const body = withoutSecrets(response.body, secrets)
    const message = withoutSecrets(said || 'The request was refused.', secrets)
    // A body in the vendor's own shape is rewritten in the common protocol's; its status and message stay.
    const protocol = textIn(error?.['message']) === '' ? 'none' : 'openai'
    return { ...rejected(message, { protocol, status, body }), retryable: foreignReasoning.test(code) }
  }
  return status === 413 ? tooLarge() : vendorFailed()
}

const errorKey = Buffer.from('"error"')

/** A vendor may refuse with a 2xx status (OpenRouter): gives the status that the error stands for, 200 without one. */
export function statusInside(body: Uint8Array): number {
  const mayRefuse = body.length <= hiddenRefusalBytesMax && indexOfBytes(body, errorKey) !== -1
  const json = mayRefuse ? parseLoosely(decodeUtf8(body)) : undefined
  const failure = isObject(json) && itemsIn(json['data']).length === 0 ? failureIn(json) : undefined
  return failure?.details.inside?.status ?? 200
}

function textOf(value: Json | undefined): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : ''
}

/**
 * The common protocol's error object or, without one, a message: in `message`, `detail`, xAI's `error` text, or plain.
 */
function readRefusal(json: Json | undefined, body: string): { error: JsonObject | undefined; message: string } {
  if (json === undefined) return { error: undefined, message: plainWords(body) }
  if (!isObject(json)) return { error: undefined, message: '' }
  const { error, message, detail } = json
  if (isObject(error)) {
    const words = [wordsIn(error['message']), relayedWords(error)]
    return { error, message: words.filter((said) => said !== '').join(': ') }
  }
  return { error: undefined, message: textOf(error) || wordsIn(message) || wordsIn(detail) }
}

/** OpenRouter says only that a provider refused; what that provider said, and clients act on, is in the metadata. */
function relayedWords({ metadata }: JsonObject): string {
  const raw = textIn(objectIn(metadata)['raw'])
  return readRefusal(parseLoosely(raw), raw).message
}

// Longer than any sentence about a request; what is longer is a page or a dump.
const plainWordsMax = 1_000
// oxlint-disable-next-line no-control-regex
const unprintable = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffd]/

/**
 * Many local servers refuse a request in plain text. A proxy's page, broken JSON and compressed bytes are no message.
 */
function plainWords(body: string): string {
  const words = body.trim()
  const isSentence = !/^[<{[]/.test(words) && words.length <= plainWordsMax && !unprintable.test(words)
  return isSentence ? words : ''
}

/** A sentence, alone or in an object; or FastAPI's list of fields and what is wrong with each (Mistral). */
function wordsIn(value: Json | undefined): string {
  const said = isObject(value) ? (value['detail'] ?? value['message']) : value
  return Array.isArray(said) ? objectsIn(said).map(writeField).join('; ') : textOf(said)
}

function writeField({ loc, msg }: JsonObject): string {
  const path = itemsIn(loc).filter((step) => typeof step === 'string' || typeof step === 'number')
  const field = writeFieldPath(path[0] === 'body' ? path.slice(1) : path)
  return field === '' ? textIn(msg) : `${field}: ${textIn(msg)}`
}
