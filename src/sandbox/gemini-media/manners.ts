import { GoogleError, modelNotFound, writeError } from '../gemini/errors.ts'
import { refusalsFor } from '../gemini/generate.ts'
import { readKey } from '../gemini/key.ts'
import type { Manners } from '../media/serve.ts'

/** Google's manners on a method; a model that does something else is as good as none. */
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
