import type { Dialect } from '../serve.ts'
import { edgePage } from '../odd-answers.ts'
import { CodedRefusal } from '../refusal.ts'
import { hashText, seededId } from '../seeded.ts'
import { errorForCode, errorForStatus, invalidField } from './errors.ts'

export const viduDialect: Dialect<CodedRefusal> = {
  /** Vidu takes `Token` instead of `Bearer`. */
  readKey({ headers }) {
    const [, key = ''] = /^Token +(\S+)$/.exec(headers.get('authorization') ?? '') ?? []
    if (key === '' || key === 'bad-key') throw errorForCode('Unauthorized')
    return key
  },
  isRefusal: (error) => error instanceof CodedRefusal,
  writeRefusal({ path, text }, { status, code: reason, message }) {
    const metadata = { trace_id: seededId('', hashText(text, hashText(path))) }
    return edgePage(status) ?? Response.json({ code: status, reason, message, metadata }, { status })
  },
  unknownModel: (model) => invalidField('model', `${model} is not a model of this endpoint`),
  wrongModel: (model) => invalidField('model', `${model} is not a model of this endpoint`),
  refusalsFor: (key) => ({
    forCode: errorForCode,
    forStatus: errorForStatus,
    leak: () => new CodedRefusal(401, 'Unauthorized', `The token ${key} is not valid.`),
    body200: () => ({ code: 500, reason: 'InternalServiceFailure', message: 'Internal error.' }),
  }),
}
