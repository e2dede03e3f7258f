/** A refusal in Vidu's form: a word for it beside the status. */
export class ViduError extends Error {
  readonly status: number
  readonly reason: string

  constructor(status: number, reason: string, message: string) {
    super(message)
    this.status = status
    this.reason = reason
  }
}

type Row = readonly [status: number, message: string]

const rows: Readonly<Record<string, Row>> = {
  FieldInvalid: [400, 'A field is not valid.'],
  CreditInsufficient: [400, 'There are not enough credits.'],
  AuditSubmitIllegal: [400, 'The input was held back by moderation.'],
  CreationPolicyViolation: [400, 'The film was held back by moderation.'],
  Unauthorized: [401, 'The token is not valid.'],
  Forbidden: [403, 'This is not allowed.'],
  TaskNotFound: [404, 'There is no such task.'],
  TooManyRequests: [429, 'There are too many requests.'],
  QuotaExceeded: [429, 'There are too many tasks.'],
  InternalServiceFailure: [500, 'Something went wrong within.'],
}

export function errorForReason(reason: string): ViduError {
  const [status, message] = rows[reason] ?? [400, `The sandbox was asked to fail with ${reason}.`]
  return new ViduError(status, reason, message)
}

export function invalidField(field: string, why: string): ViduError {
  return new ViduError(400, 'FieldInvalid', `${field}: ${why}`)
}

const usual: Readonly<Record<number, string>> = {
  401: 'Unauthorized',
  402: 'CreditInsufficient',
  403: 'Forbidden',
  404: 'TaskNotFound',
  429: 'TooManyRequests',
}

export function errorForStatus(status: number): ViduError {
  const { reason, message } = errorForReason(
    usual[status] ?? (status >= 500 ? 'InternalServiceFailure' : 'FieldInvalid'),
  )
  return new ViduError(status, reason, message)
}
