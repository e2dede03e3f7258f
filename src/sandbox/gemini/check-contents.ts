import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import { GoogleError, invalid, invalidField } from './errors.ts'
import { dataFields } from './shapes.ts'
import { isGenuine, type Signed } from './signatures.ts'

/** The vendor's rules on `contents`: roles, parts, and that the next content answers all function calls. */
export function checkContents(contents: readonly Fields[], insistsOnSignatures: boolean): void {
  if (contents.length === 0) throw invalidField('contents', 'contents is not specified')
  for (const [index, content] of contents.entries()) {
    const { role } = content
    if (isGiven(role) && role !== 'user' && role !== 'model') throw invalid('Please use a valid role: user, model.')
    checkParts(content, `contents[${index}]`)
  }
  checkTurns(contents)
  checkSignatures(contents, insistsOnSignatures)
}

/** The protocol has no system role: the system instruction is text in a field beside the contents. */
export function checkSystemInstruction(instruction: unknown): void {
  if (!isGiven(instruction)) return
  checkParts(fieldsIn(instruction), 'system_instruction')
  if (partsOf(fieldsIn(instruction)).some((part) => !isGiven(part.text))) {
    throw invalid('System instruction should only contain text.')
  }
}

export function partsOf(content: Fields): readonly Fields[] {
  return itemsIn(content.parts).map(fieldsIn)
}

function callsOf(content: Fields): readonly Fields[] {
  return partsOf(content).flatMap(({ functionCall }) => (isGiven(functionCall) ? [fieldsIn(functionCall)] : []))
}

export function responsesOf(content: Fields): readonly Fields[] {
  return partsOf(content).flatMap(({ functionResponse }) =>
    isGiven(functionResponse) ? [fieldsIn(functionResponse)] : [],
  )
}

function checkParts(content: Fields, path: string): void {
  const parts = partsOf(content)
  if (parts.length === 0) throw invalidField(`${path}.parts`, 'contents.parts must not be empty.')
  for (const [index, part] of parts.entries()) {
    const at = `${path}.parts[${index}]`
    const isEmptyText = part.text === '' && !isGiven(part.thoughtSignature)
    // The vendor itself delivers signatures on empty texts.
    if (isEmptyText || !dataFields.some((name) => isGiven(part[name]))) {
      throw invalidField(`${at}.data`, "required oneof field 'data' must have one initialized field")
    }
    if (isGiven(part.inlineData)) checkBlob(fieldsIn(part.inlineData), `${at}.inline_data`)
    if (isGiven(part.fileData)) checkFile(fieldsIn(part.fileData), `${at}.file_data`)
    for (const name of ['functionCall', 'functionResponse'] as const) {
      if (!isGiven(part[name]) || textIn(fieldsIn(part[name]).name) !== '') continue
      const field = name === 'functionCall' ? 'function_call' : 'function_response'
      throw invalidField(`${at}.${field}.name`, 'Name cannot be empty.')
    }
  }
}

const mediaTypes =
  /^(?!image\/jpg$)(image|audio|video|text)\/[\w.+-]+|^application\/(pdf|json|rtf|x-javascript|x-python)/

function checkBlob({ mimeType, data }: Fields, at: string): void {
  if (textIn(data) === '') throw invalidField(`${at}.data`, 'data must not be empty.')
  if (!mediaTypes.test(textIn(mimeType))) throw invalid(`Unsupported MIME type: ${textIn(mimeType)}`)
}

// Uploaded files and YouTube. The vendor does not fetch any other web address.
const fileAddresses =
  /^https:\/\/(generativelanguage\.googleapis\.com\/.*files\/|www\.youtube\.com\/|youtube\.com\/|youtu\.be\/)|^files\//

function checkFile({ fileUri }: Fields, at: string): void {
  if (textIn(fileUri) === '') throw invalidField(`${at}.file_uri`, 'file_uri must not be empty.')
  if (fileAddresses.test(textIn(fileUri))) return
  throw new GoogleError({ status: 400, message: `Cannot fetch content from the provided URL: ${textIn(fileUri)}` })
}

function checkTurns(contents: readonly Fields[]): void {
  let open: readonly Fields[] = []
  for (const [index, content] of contents.entries()) {
    const isModel = content.role === 'model'
    const calls = callsOf(content)
    const answers = responsesOf(content)
    if ((isModel && answers.length > 0) || (open.length === 0 && answers.length > 0)) {
      throw invalid('Please ensure that function response turn comes immediately after a function call turn.')
    }
    if (calls.length > 0 && (!isModel || index === 0)) {
      throw invalid(
        'Please ensure that function call turn comes immediately after a user turn or after a function response turn.',
      )
    }
    if (answers.length !== open.length) throw unanswered()
    checkNames(open, answers)
    open = calls
  }
  if (open.length > 0) throw unanswered()
}

function unanswered(): GoogleError {
  return invalid(
    'Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn.',
  )
}

/**
 * At the vendor a wrong name only confuses the model. The simulator refuses it, so that a gateway's mistake is noticed.
 */
function checkNames(calls: readonly Fields[], answers: readonly Fields[]): void {
  const open = calls.map(({ name }) => name)
  for (const { name } of answers) {
    const at = open.indexOf(name)
    if (at < 0)
      throw invalid(`Function response \`${textIn(name)}\` does not answer any function call of the turn before.`)
    open.splice(at, 1)
  }
}

/**
 * Every given signature must be genuine. Models that insist on signatures require one in each step of the current turn.
 */
function checkSignatures(contents: readonly Fields[], insists: boolean): void {
  const turnStart = contents.findLastIndex((content) => content.role !== 'model' && responsesOf(content).length === 0)
  for (const [index, content] of contents.entries()) {
    for (const { thoughtSignature: signature, ...part } of partsOf(content)) {
      if (isGiven(signature) && !isGenuine(textIn(signature), signedIn(part))) {
        throw invalid('Corrupted thought signature.')
      }
    }
    // Only the first of several parallel calls is signed.
    const first = partsOf(content).find(({ functionCall }) => isGiven(functionCall))
    if (!insists || index < turnStart || first === undefined || isGiven(first.thoughtSignature)) continue
    const name = textIn(fieldsIn(first.functionCall).name)
    throw invalid(
      `Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call \`default_api:${name}\` , position ${index + 1}. Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details.`,
    )
  }
}

function signedIn({ functionCall }: Fields): Signed {
  if (!isGiven(functionCall)) return { kind: 'text' }
  const { name, args } = fieldsIn(functionCall)
  return { kind: 'call', name: textIn(name), args }
}
