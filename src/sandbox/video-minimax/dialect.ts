import { bearerOf } from '../bearer.ts'
import type { Dialect } from '../serve.ts'
import { edgePage } from '../odd-answers.ts'
import { CodedRefusal } from '../refusal.ts'
import { errorForCode, errorForStatus, invalid, writeBase } from './errors.ts'

export const minimaxDialect: Dialect<CodedRefusal<number>> = {
  readKey(request) {
    const key = bearerOf(request.headers)
    if (key === undefined || key === 'bad-key') throw errorForCode('1004')
    return key
  },
  isRefusal: (error) => error instanceof CodedRefusal,
  writeRefusal: (_, { status, code, message }) =>
    edgePage(status, { also: [504] }) ??
    Response.json(writeBase(code, message), { status: status >= 500 ? status : 200 }),
  unknownModel: (model) => invalid(`model ${model} does not exist`),
  wrongModel: (model) => invalid(`model ${model} makes no videos`),
  refusalsFor: (key) => ({
    forCode: errorForCode,
    forStatus: errorForStatus,
    leak: () => new CodedRefusal(401, 1004, `not authorized: ${key}`),
    body200() {
      const { code, message } = errorForStatus(500)
      return writeBase(code, message)
    },
  }),
}
