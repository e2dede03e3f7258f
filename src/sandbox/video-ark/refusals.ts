import { VendorError } from '../chat/errors.ts'
import { commonDialect } from '../media/common.ts'
import type { Dialect } from '../serve.ts'

/** An invalid field in Ark's words. The request id is added when the error is written. */
export function invalidField(param: string, why: string, code = 'InvalidParameter'): VendorError {
  const message = `The parameter \`${param}\` specified in the request is not valid: ${why}.`
  return new VendorError({ status: 400, message, code, param, verbatim: true })
}

export function missingField(param: string): VendorError {
  const message = `The request failed because it is missing \`${param}\` parameter.`
  return new VendorError({ status: 400, message, code: 'MissingParameter', param, verbatim: true })
}

export function taskNotFound(id: string): VendorError {
  const message = `The specified task ${id} is not found.`
  return new VendorError({ status: 404, message, code: 'NotFound.Task', verbatim: true })
}

export function wrongState(id: string, state: string): VendorError {
  const message = `The task ${id} is ${state} and can not be cancelled or deleted.`
  return new VendorError({ status: 403, message, code: 'OperationDenied.InvalidState', verbatim: true })
}

export const arkDialect: Dialect<VendorError> = {
  ...commonDialect,
  unknownModel(model) {
    const message = `The model or endpoint ${model} does not exist or you do not have access to it.`
    return new VendorError({ status: 404, message, code: 'InvalidEndpointOrModel.NotFound', verbatim: true })
  },
  wrongModel: (model) => invalidField('model', `the model ${model} does not support content generation`),
}
