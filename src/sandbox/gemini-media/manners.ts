import { GoogleError, modelNotFound, writeError } from '../gemini/errors.ts'
import { refusalsFor } from '../gemini/generate.ts'
import { readKey } from '../gemini/key.ts'
import type { Manners } from '../media/serve.ts'

/** Google's manners for a method. A model that does not support the method is reported as unknown. */
export function mannersOn(method: string): Manners<GoogleError> {
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
