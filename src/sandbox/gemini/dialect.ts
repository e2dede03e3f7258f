import type { Refusals } from '../faults.ts'
import { badKey, errorBody, errorForCode, errorForStatus, GoogleError, modelNotFound, writeError } from './errors.ts'
import { readKey } from './key.ts'
import type { Dialect } from '../serve.ts'

/** Google's dialect for a method. A model that does not support the method is reported as unknown. */
export function dialectOn(method: string): Dialect<GoogleError> {
  const unknownModel = (model: string): GoogleError => modelNotFound(model, method)
  return {
    readKey,
    isRefusal: (error) => error instanceof GoogleError,
    writeRefusal: (_, refusal) => writeError(refusal, false),
    unknownModel,
    wrongModel: unknownModel,
    refusalsFor,
  }
}

export function refusalsFor(key: string): Refusals {
  return {
    forCode: errorForCode,
    forStatus: errorForStatus,
    leak: () => badKey(`API key not valid: ${key}. Please pass a valid API key.`),
    body200: () => errorBody(errorForStatus(500)),
  }
}
