import { CodedRefusal, refusalsIn, type RefusalRows } from '../refusal.ts'

/** The vendor's refusals by its own code, with the HTTP status. */
const rows: RefusalRows = {
  FieldInvalid: [400, 'A field is not valid.'],
  CreditInsufficient: [400, 'There are not enough credits.'],
  AuditSubmitIllegal: [400, 'The input was held back by moderation.'],
  CreationPolicyViolation: [400, 'The video was held back by moderation.'],
  Unauthorized: [401, 'The token is not valid.'],
  Forbidden: [403, 'This is not allowed.'],
  TaskNotFound: [404, 'There is no such task.'],
  TooManyRequests: [429, 'There are too many requests.'],
  QuotaExceeded: [429, 'There are too many tasks.'],
  InternalServiceFailure: [500, 'Internal error.'],
}

const usual: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  402: 'CreditInsufficient',
  403: 'Forbidden',
  404: 'TaskNotFound',
  429: 'TooManyRequests',
}

export const { errorForCode, errorForStatus } = refusalsIn({
  rows,
  usual,
  callers: 'FieldInvalid',
  vendors: 'InternalServiceFailure',
  codeOf: String,
})

export function invalidField(field: string, why: string): CodedRefusal {
  return new CodedRefusal(400, 'FieldInvalid', `${field}: ${why}`)
}
