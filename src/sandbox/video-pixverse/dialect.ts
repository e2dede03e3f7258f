import type { Dialect } from '../serve.ts'
import { edgePage } from '../odd-answers.ts'
import { CodedRefusal } from '../refusal.ts'
import { errorForCode, errorForStatus, invalid, writeAnswer } from './errors.ts'

export const pixverseDialect: Dialect<CodedRefusal<number>> = {
  /** PixVerse takes its key in a header of its own, and refuses a call without a trace id. */
  readKey({ headers }) {
    const key = headers.get('api-key') ?? ''
    if (key === '' || key === 'bad-key') throw errorForCode('10005')
    if ((headers.get('ai-trace-id') ?? '') === '') throw invalid('Ai-trace-id is empty', 400011)
    return key
  },
  isRefusal: (error) => error instanceof CodedRefusal,
  writeRefusal: (_, { status, code, message }) =>
    edgePage(status, { also: [504] }) ??
    Response.json(writeAnswer(null, code, message), { status: status >= 500 ? status : 200 }),
  unknownModel: (model) => invalid(`model ${model} does not exist`),
  wrongModel: (model) => invalid(`model ${model} makes no videos`),
  refusalsFor: (key) => ({
    forCode: errorForCode,
    forStatus: errorForStatus,
    leak: () => new CodedRefusal(401, 10005, `Not logged in with ${key}.`),
    body200() {
      const { code, message } = errorForStatus(500)
      return writeAnswer(null, code, message)
    },
  }),
}
