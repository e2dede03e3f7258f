import { bearerOf } from '../bearer.ts'
import type { Dialect } from '../serve.ts'
import { edgePage } from '../odd-answers.ts'
import { Refusal } from '../refusal.ts'
import { errorForStatus, invalidField } from './errors.ts'

const version = '2024-11-06'

export const runwayDialect: Dialect<Refusal> = {
  /** Every call, also one about a task, carries a key and the version of the protocol. */
  readKey({ headers }) {
    const key = bearerOf(headers)
    if (key === undefined || key === 'bad-key') throw errorForStatus(401)
    if (headers.get('x-runway-version') !== version) {
      throw new Refusal(400, `The X-Runway-Version header is missing or not valid. Use ${version}.`)
    }
    return key
  },
  isRefusal: (error) => error instanceof Refusal,
  writeRefusal: (_, { status, message }) => edgePage(status) ?? Response.json({ error: message }, { status }),
  unknownModel: (model) => invalidField('model', `${model} is not a model of this endpoint`),
  wrongModel: (model) => invalidField('model', `${model} is not a model of this endpoint`),
  refusalsFor: (key) => ({
    forCode: (code) => new Refusal(400, `The sandbox was asked to fail with ${code}.`),
    forStatus: errorForStatus,
    leak: () => new Refusal(401, `The API key ${key} is not valid.`),
    body200: () => ({ error: 'An unexpected error occurred.' }),
  }),
}
