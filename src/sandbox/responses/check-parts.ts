import { badRequest, missing } from '../chat/errors.ts'
import { type Fields, isGiven, textIn } from '../fields.ts'
import { checkKnown, checkOneOf, fieldsAt, listAt, textAt } from './shape.ts'

const roles = ['assistant', 'system', 'developer', 'user'] as const
const said = ['output_text', 'refusal'] as const
const given = ['input_text', 'input_image', 'input_file'] as const

const knownByType: Readonly<Record<string, readonly string[]>> = {
  input_text: ['text', 'prompt_cache_breakpoint'],
  input_image: ['image_url', 'file_id', 'detail', 'prompt_cache_breakpoint'],
  input_file: ['file_data', 'file_id', 'file_url', 'filename', 'detail', 'prompt_cache_breakpoint'],
  output_text: ['text', 'annotations', 'logprobs'],
  refusal: ['refusal'],
}

/** A message's content is a text, or parts with a `type` each. */
export function checkContent({ role, content }: Fields, at: string): void {
  checkOneOf(role, roles, `${at}.role`)
  checkParts(content, role === 'assistant' ? said : given, `${at}.content`)
}

/** The output of a tool. */
export function checkOutput(output: unknown, at: string): void {
  checkParts(output, given, at)
}

function checkParts(content: unknown, supported: readonly string[], at: string): void {
  if (!isGiven(content)) throw missing(at)
  if (typeof content === 'string') return
  for (const [index, part] of listAt(content, at).entries()) {
    checkPart(fieldsAt(part, `${at}[${index}]`), supported, `${at}[${index}]`)
  }
}

function checkPart(part: Fields, supported: readonly string[], at: string): void {
  const { type } = part
  if (!isGiven(type)) throw missing(`${at}.type`)
  // The vendor's error names the part, not its type.
  checkOneOf(type, supported, at)
  checkKnown(part, ['type', ...(knownByType[textIn(type)] ?? [])], at)
  if (type === 'refusal') textAt(part.refusal, `${at}.refusal`)
  else if (type === 'input_image') checkImage(part, at)
  else if (type === 'input_file') checkFile(part, at)
  else textAt(part.text, `${at}.text`)
}

function checkImage({ image_url: url, file_id: file, detail }: Fields, at: string): void {
  if (isGiven(detail)) checkOneOf(detail, ['low', 'high', 'auto', 'original'], `${at}.detail`)
  if (!isGiven(url)) {
    textAt(file, `${at}.image_url`)
    return
  }
  const link = textAt(url, `${at}.image_url`)
  if (/^(?:https?:\/\/|data:image\/[\w.+-]+;base64,)/i.test(link)) return
  const message = `Invalid '${at}.image_url'. Expected a valid URL, but got a value with an invalid format.`
  throw badRequest(message, `${at}.image_url`, 'invalid_value')
}

function checkFile({ file_data: data, file_id: file, file_url: url }: Fields, at: string): void {
  if (!isGiven(data)) {
    textAt(file ?? url, `${at}.file_id`)
    return
  }
  if (/^data:[\w.+/-]+;base64,/i.test(textAt(data, `${at}.file_data`))) return
  const message = `Invalid '${at}.file_data'. Expected a base64-encoded data URL, but got a value without the 'data:' prefix.`
  throw badRequest(message, `${at}.file_data`, 'invalid_value')
}
