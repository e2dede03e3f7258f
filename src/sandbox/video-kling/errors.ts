import { CodedRefusal, refusalsIn, type RefusalRows } from '../refusal.ts'

/** The vendor's refusals by its own code, with the HTTP status. */
const rows: RefusalRows = {
  '1000': [401, 'Authentication failed'],
  '1001': [401, 'Authorization is empty'],
  '1002': [401, 'Authorization is invalid'],
  '1003': [401, 'Authorization is not yet valid'],
  '1004': [401, 'Authorization has expired'],
  '1100': [429, 'Account exception'],
  '1101': [429, 'Account in arrears'],
  '1102': [429, 'Account balance not enough'],
  '1103': [403, 'Unauthorized access to requested resource'],
  '1200': [400, 'Invalid request parameters'],
  '1201': [400, 'Invalid parameters'],
  '1202': [404, 'Invalid request method'],
  '1203': [404, 'Requested resource does not exist'],
  '1300': [400, 'Trigger strategy of the platform'],
  '1301': [400, 'Failure to pass the risk control system'],
  '1302': [429, 'API request too fast'],
  '1303': [429, 'Parallel task over resource pack limit'],
  '1304': [429, 'Trigger the IP whitelist policy'],
  '5000': [500, 'Internal server error'],
  '5001': [503, 'Server temporarily unavailable'],
  '5002': [504, 'Server internal timeout'],
}

const usual: Readonly<Record<number, string>> = {
  400: '1200',
  401: '1000',
  402: '1102',
  403: '1103',
  404: '1203',
  429: '1302',
  500: '5000',
  503: '5001',
  504: '5002',
}

export const { errorForCode, errorForStatus } = refusalsIn({
  rows,
  usual,
  callers: '1200',
  vendors: '5000',
  codeOf: (name) => Number(name) || 1200,
})

export function invalidField(message: string): CodedRefusal<number> {
  return new CodedRefusal(400, 1201, message)
}
