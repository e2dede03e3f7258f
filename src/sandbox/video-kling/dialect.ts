import type { Dialect } from '../serve.ts'
import { edgePage } from '../odd-answers.ts'
import type { Call } from '../protocol.ts'
import { CodedRefusal } from '../refusal.ts'
import { hashText, seededId } from '../seeded.ts'
import { errorForCode, errorForStatus, invalidField } from './errors.ts'
import { readToken } from './token.ts'

export const klingDialect: Dialect<CodedRefusal<number>> = {
  readKey: (request) => readToken(request.headers.get('authorization'), Date.now()),
  isRefusal: (error) => error instanceof CodedRefusal,
  writeRefusal: (call, { status, code, message }) =>
    edgePage(status) ?? Response.json({ code, message, request_id: requestIdOf(call) }, { status }),
  unknownModel: (model) => new CodedRefusal(404, 1203, `model ${model} does not exist`),
  wrongModel: (model) => invalidField(`model_name value '${model}' is invalid`),
  refusalsFor: (key) => ({
    forCode: errorForCode,
    forStatus: errorForStatus,
    leak: () => new CodedRefusal(401, 1000, `access key not found: ${key}`),
    body200: () => ({ code: 5000, message: 'Internal server error', request_id: 'sandbox' }),
  }),
}

type Said = Pick<Call, 'path' | 'text'>

function requestIdOf({ path, text }: Said): string {
  return seededId('', hashText(text, hashText(path)))
}

export function writeKling(call: Said, data: unknown): string {
  return JSON.stringify({ code: 0, message: 'SUCCEED', request_id: requestIdOf(call), data })
}
