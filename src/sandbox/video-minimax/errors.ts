import { CodedRefusal, refusalsIn, type RefusalRows } from '../refusal.ts'

const troubleCode = 1000

/**
 * The known part of the vendor's list. MiniMax sends its own code under status 200, unless the server itself fails. The
 * statuses here are those that other vendors would use; they appear on the bill.
 */
const rows: RefusalRows = {
  [troubleCode]: [500, 'unknown error'],
  '1002': [429, 'rate limit'],
  '1004': [401, 'not authorized'],
  '1008': [402, 'insufficient balance'],
  '1026': [400, 'input is sensitive'],
  '1027': [400, 'output is sensitive'],
  '1039': [429, 'token limit'],
  '1041': [429, 'conn limit'],
  '1042': [400, 'invisible character ratio limit'],
  '2013': [400, 'invalid params'],
  '2042': [400, 'no access to this voice_id'],
  '2045': [429, 'rate growth limit'],
  '2049': [401, 'invalid api key'],
  '2054': [400, 'voice id not exist'],
  '2056': [402, 'usage limit exceeded'],
  '20132': [400, 'invalid samples or voice_id'],
}

export const { errorForCode, errorForStatus } = refusalsIn({
  rows,
  usual: { 401: '1004', 402: '1008', 403: '1004', 429: '1002' },
  callers: '2013',
  vendors: String(troubleCode),
  codeOf: (name) => Number(name) || troubleCode,
})

export function invalid(message: string): CodedRefusal<number> {
  return new CodedRefusal(400, 2013, `invalid params, ${message}`)
}

/** Part of every answer; zero means success. */
export function writeBase(code = 0, message = 'success'): object {
  return { base_resp: { status_code: code, status_msg: message } }
}
