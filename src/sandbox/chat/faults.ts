import type { Refusals } from '../faults.ts'
import { errorForCode, errorForStatus, VendorError } from './errors.ts'

export function refusalsFor(key: string): Refusals {
  return {
    forCode: errorForCode,
    forStatus: errorForStatus,
    leak() {
      const message = `Incorrect API key provided: ${key}. You can find your API key at https://platform.openai.com/account/api-keys.`
      return new VendorError({ status: 401, message, code: 'invalid_api_key' })
    },
    body200: () => ({
      error: { message: 'Something went wrong.', type: 'server_error', param: null, code: 'internal_error' },
    }),
  }
}
