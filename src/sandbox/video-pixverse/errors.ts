import { CodedRefusal, refusalsIn, type RefusalRows } from '../refusal.ts'

const troubleCode = 99999

/**
 * The part of the vendor's list that orders and uploads can meet. PixVerse sends its own code under status 200, unless
 * the server itself fails. The statuses here are those that other vendors would use; they appear on the bill.
 */
const rows: RefusalRows = {
  [troubleCode]: [500, 'Unknown error.'],
  '10001': [401, 'The token has expired.'],
  '10005': [401, 'Not logged in.'],
  '400011': [400, 'A parameter is empty.'],
  '400012': [401, 'The account is not valid.'],
  '400013': [400, 'A parameter has the wrong type or value.'],
  '400017': [400, 'A parameter is not valid.'],
  '400018': [400, 'The prompt is too long.'],
  '400019': [400, 'The negative prompt is too long.'],
  '400032': [400, 'The image does not exist.'],
  '500008': [404, 'The resource does not exist.'],
  '500020': [403, 'The account may not do this.'],
  '500030': [400, 'The image is too large.'],
  '500032': [400, 'The image format is not supported.'],
  '500043': [402, 'All credits are used up.'],
  '500044': [429, 'The limit of concurrent videos is reached.'],
  '500052': [400, 'The image was held back by moderation.'],
  '500054': [400, 'An image was held back by moderation.'],
  '500063': [400, 'The text was held back by moderation.'],
  '500064': [404, 'It has been deleted.'],
  '500069': [429, 'The system is overloaded.'],
  '500090': [402, 'The balance is too low for this video.'],
  '500100': [500, 'Database error.'],
}

export const { errorForCode, errorForStatus } = refusalsIn({
  rows,
  usual: { 401: '10005', 402: '500090', 403: '500020', 404: '500008', 429: '500044' },
  callers: '400017',
  vendors: String(troubleCode),
  codeOf: (name) => Number(name) || troubleCode,
})

export function invalid(message: string, code = 400017): CodedRefusal<number> {
  return new CodedRefusal(400, code, message)
}

/** The envelope of every answer; zero means success. */
export function writeAnswer(resp: object | null, code = 0, message = 'success'): object {
  return { ErrCode: code, ErrMsg: message, Resp: resp }
}
