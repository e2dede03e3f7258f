import { GoogleError, modelNotFound, writeError } from '../gemini/errors.ts'
import { refusalsFor } from '../gemini/generate.ts'
import { readKey } from '../gemini/key.ts'
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
