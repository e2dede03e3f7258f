import { badRequest, missing } from './errors.ts'
import { type Fields, fieldsIn, isGiven, itemsIn, shown, textIn } from '../fields.ts'

/** The tool calls in an assistant message, each of which must be complete. */
export function checkCalls(calls: unknown, at: string): void {
  if (!isGiven(calls)) return
  if (!Array.isArray(calls)) throw badRequest(`Invalid type for '${at}': expected an array.`, at, 'invalid_type')
  for (const [index, call] of calls.entries()) checkCall(fieldsIn(call), `${at}[${index}]`)
}

function checkCall({ id, type, ...fields }: Fields, at: string): void {
  if (textIn(id) === '') throw missing(`${at}.id`)
  if (type !== 'function' && type !== 'custom') {
    const message = `Invalid value: '${shown(type)}'. Supported values are: 'function' and 'custom'.`
    throw badRequest(message, `${at}.type`, 'invalid_value')
  }
  const called = fieldsIn(fields[type])
  const said = type === 'function' ? 'arguments' : 'input'
  if (textIn(called.name) === '') throw missing(`${at}.${type}.name`)
  if (typeof called[said] !== 'string') {
    const param = `${at}.${type}.${said}`
    throw badRequest(`Invalid type for '${param}': expected a string.`, param, 'invalid_type')
  }
}

/** Checks what each type of part has to hold. Types not listed here were refused before, or belong to other vendors. */
export function checkParts(content: unknown, at: string): void {
  for (const [index, part] of itemsIn(content).entries()) checkPart(fieldsIn(part), `${at}[${index}]`)
}

function checkPart(part: Fields, at: string): void {
  const { type } = part
  if (type === 'text' && typeof part.text !== 'string') throw missing(`${at}.text`)
  if (type === 'refusal' && typeof part.refusal !== 'string') throw missing(`${at}.refusal`)
  if (type === 'image_url') checkImage(fieldsIn(part.image_url), `${at}.image_url`)
  if (type === 'input_audio') checkAudio(fieldsIn(part.input_audio), `${at}.input_audio`)
  if (type === 'file') {
    const { file_data: data, file_id: id } = fieldsIn(part.file)
    if (textIn(data) === '' && textIn(id) === '') throw missing(`${at}.file.file_id`)
  }
}

function checkImage({ url, detail }: Fields, at: string): void {
  if (textIn(url) === '') throw missing(`${at}.url`)
  if (!/^(?:https?:\/\/|data:image\/[\w.+-]+;base64,)/i.test(textIn(url))) {
    throw badRequest(`Invalid '${at}.url'. Expected a valid URL.`, `${at}.url`, 'invalid_value')
  }
  if (isGiven(detail) && !['auto', 'low', 'high', 'original'].includes(textIn(detail))) {
    throw badRequest(`Invalid value: '${shown(detail)}'.`, `${at}.detail`, 'invalid_value')
  }
}

function checkAudio({ data, format }: Fields, at: string): void {
  if (textIn(data) === '') throw missing(`${at}.data`)
  if (format === 'wav' || format === 'mp3') return
  const message = `Invalid value: '${shown(format)}'. Supported values are: 'wav' and 'mp3'.`
  throw badRequest(message, `${at}.format`, 'invalid_value')
}

export function emptyArray(param: string) {
  const message = `Invalid '${param}': empty array. Expected an array with minimum length 1, but got an empty array instead.`
  return badRequest(message, param, 'empty_array')
}
