import type { Refusals } from '../faults.ts'
import { edgePage } from '../odd-answers.ts'
import { CodedRefusal, refusalsIn, type RefusalRows } from '../refusal.ts'
import { hashText, hexDigits, seeded } from '../seeded.ts'

export const invalidParameter = (message: string): CodedRefusal => new CodedRefusal(400, 'InvalidParameter', message)

/** A message from the algorithm behind the vendor's gateway, which passes it on. */
export const invalidForAlgorithm = (message: string): CodedRefusal =>
  invalidParameter(`<400> InternalError.Algo.InvalidParameter: ${message}`)

export const modelNotFound = (): CodedRefusal => new CodedRefusal(404, 'ModelNotFound', 'Model can not be found.')

export const badKey = (message = 'Invalid API-key provided.'): CodedRefusal =>
  new CodedRefusal(401, 'InvalidApiKey', message)

const throttled = 'Requests rate limit exceeded, please try again later.'
const inspected = 'Input or output data may contain inappropriate content.'
const overdue = 'Access denied, please make sure your account is in good standing.'

/** The codes that `sandbox:fail=CODE` knows, with the vendor's status and message. */
const rows: RefusalRows = {
  InvalidParameter: [400, 'Required parameter(s) missing or invalid, please check the request parameters.'],
  DataInspectionFailed: [400, inspected],
  InvalidURL: [400, 'The media URL can not be fetched.'],
  Arrearage: [400, overdue],
  UnsupportedOperation: [400, 'The operation is unsupported.'],
  InvalidApiKey: [401, 'Invalid API-key provided.'],
  AccessDenied: [403, 'Access denied.'],
  'Model.AccessDenied': [403, 'Model access denied.'],
  'AccessDenied.Unpurchased': [403, 'Access to model denied. Please make sure you are eligible for using the model.'],
  'AllocationQuota.FreeTierOnly': [403, 'The free tier of the model has been exhausted.'],
  ModelNotFound: [404, 'Model can not be found.'],
  RequestTimeOut: [408, 'Request timed out, please try again later.'],
  'BadRequest.TooLarge': [413, 'Payload Too Large'],
  'BadRequest.InputDownloadFailed': [415, 'Failed to download the input file.'],
  Throttling: [429, throttled],
  'Throttling.RateQuota': [429, throttled],
  'Throttling.AllocationQuota': [429, 'Allocated quota exceeded, please increase your quota limit.'],
  PostpaidBillOverdue: [429, 'The postpaid bill is overdue.'],
  InternalError: [500, 'An internal error has occured, please try again later or contact service support.'],
  'InternalError.Timeout': [500, 'An internal timeout error has occured, please try again later.'],
  SystemError: [500, 'An system error has occured, please try again later.'],
  ModelUnavailable: [503, 'Model is unavailable, please try again later.'],
}

/** The usual code of a status. */
const usual: Readonly<Record<number, string>> = {
  401: 'InvalidApiKey',
  403: 'AccessDenied',
  404: 'ModelNotFound',
  408: 'RequestTimeOut',
  429: 'Throttling.RateQuota',
  503: 'ModelUnavailable',
}

export const { errorForCode, errorForStatus } = refusalsIn({
  rows,
  usual,
  callers: 'InvalidParameter',
  vendors: 'InternalError',
  codeOf: String,
})

export function refusalsFor(key: string): Refusals {
  return {
    forCode: errorForCode,
    forStatus: errorForStatus,
    leak: () => badKey(`Invalid API-key provided: ${key}.`),
    body200: () => errorBody(errorForStatus(500), requestIdFor('error200')),
  }
}

/** The id depends only on the request. It need not be secret here. */
export function requestIdFor(text: string): string {
  return hexDigits(seeded(hashText(text)), 32).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}

export function errorBody({ code, message }: CodedRefusal, requestId: string): unknown {
  return { code, message, request_id: requestId }
}

/** A refused stream is still a stream: status 200, with the real status in a comment. */
export function writeRefusal(request: Request, text: string, error: CodedRefusal): Response {
  const { status } = error
  const page = edgePage(status, { also: [413, 504] })
  if (page) return page
  const requestId = requestIdFor(text)
  const headers = { 'x-request-id': requestId }
  const body = errorBody(error, requestId)
  if (!wantsEvents(request)) return Response.json(body, { status, headers })
  return new Response(errorEvent(1, status, body), { headers: { ...headers, 'content-type': 'text/event-stream' } })
}

export const wantsEvents = (request: Request): boolean => request.headers.get('x-dashscope-sse') === 'enable'

/** DashScope writes no space after the colon, and puts the status into an SSE comment. */
export const resultEvent = (id: number, data: unknown): string =>
  `id:${id}\nevent:result\n:HTTP_STATUS/200\ndata:${JSON.stringify(data)}\n\n`

export const errorEvent = (id: number, status: number, data: unknown): string =>
  `id:${id}\nevent:error\n:HTTP_STATUS/${status}\ndata:${JSON.stringify(data)}\n\n`
