import { CodedRefusal, refusalsIn, type RefusalRows } from '../refusal.ts'

const troubleCode = 99999

/**
 * The part of the vendor's list that orders and uploads can meet. PixVerse sends its own code under status 200, unless
 * the server itself fails. The statuses here are those that other vendors would use; they appear on the bill.
 */
const rows: RefusalRows = {
  [troubleCode]: [500, 'Something is wrong that has no name.'],
  '10001': [401, 'The token is over.'],
  '10005': [401, 'Nobody is logged in.'],
  '400011': [400, 'A parameter is empty.'],
  '400012': [401, 'The account is not valid.'],
  '400013': [400, 'A parameter has the wrong type or value.'],
  '400017': [400, 'A parameter is not valid.'],
  '400018': [400, 'The prompt is too long.'],
  '400019': [400, 'The negative prompt is too long.'],
  '400032': [400, 'The picture is not there.'],
  '500008': [404, 'What was asked for is not there.'],
  '500020': [403, 'The account may not do this.'],
  '500030': [400, 'The picture is too large.'],
  '500032': [400, 'The picture has a format that is not known.'],
  '500043': [402, 'All credits are used up.'],
  '500044': [429, 'As many films are being made as the plan allows.'],
  '500052': [400, 'The picture was held back by moderation.'],
  '500054': [400, 'A picture was held back by moderation.'],
  '500063': [400, 'The text was held back by moderation.'],
  '500064': [404, 'It has been deleted.'],
  '500069': [429, 'The system has too much to do.'],
  '500090': [402, 'The balance is too low for this film.'],
  '500100': [500, 'The database is in trouble.'],
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
