/** A refusal in MiniMax's form: a number of its own, under status 200 unless the server itself is in trouble. */
export class MinimaxError extends Error {
  /** What others would answer with; it stands on the bill. */
  readonly status: number
  readonly code: number

  constructor(status: number, code: number, message: string) {
    super(message)
    this.status = status
    this.code = code
  }
}

type Row = readonly [status: number, message: string]

/** As much of the vendor's list as is known. */
const rows: Readonly<Record<string, Row>> = {
  '1002': [429, 'rate limit'],
  '1004': [401, 'not authorized'],
  '1008': [402, 'insufficient balance'],
  '1026': [400, 'input is sensitive'],
  '1027': [400, 'output is sensitive'],
  '2013': [400, 'invalid params'],
}

const troubleCode = 1000

export function errorForCode(code: string): MinimaxError {
  const [status, message] = rows[code] ?? [400, `the sandbox was asked to fail with ${code}`]
  return new MinimaxError(status, Number(code) || troubleCode, message)
}

export function invalid(message: string): MinimaxError {
  return new MinimaxError(400, 2013, `invalid params, ${message}`)
}

const usualCodes: Readonly<Record<number, string>> = { 401: '1004', 402: '1008', 403: '1004', 429: '1002' }

export function errorForStatus(status: number): MinimaxError {
  if (status >= 500) return new MinimaxError(status, troubleCode, 'unknown error')
  const { code, message } = errorForCode(usualCodes[status] ?? '2013')
  return new MinimaxError(status, code, message)
}

/** What stands beside every answer; zero is a success. */
export function writeBase(code = 0, message = 'success'): object {
  return { base_resp: { status_code: code, status_msg: message } }
}
