import type { Units } from '../bill.ts'
import type { VendorError } from '../chat/errors.ts'
import type { Fields } from '../fields.ts'
import { commonHeaders, openJson } from '../media/common.ts'
import { endpointAt, type Endpoint, type Dialect } from '../serve.ts'
import type { SandboxModel } from '../model.ts'
import type { Call, Protocol } from '../protocol.ts'
import { countUnits, type EmbeddingAsk } from './ask.ts'

/** What differs between vendors' embeddings. */
type Form = {
  readonly dialect: Dialect<VendorError>
  readonly read: (body: Fields, model: SandboxModel) => EmbeddingAsk
  readonly write: (ask: EmbeddingAsk, units: Units, call: Call) => object
}

export function embeddingsAt(path: string, { dialect, read, write }: Form): Protocol {
  const endpoint: Endpoint<Fields, EmbeddingAsk, VendorError> = {
    dialect,
    capabilities: ['embeddings'],
    open: openJson,
    read,
    make(ask, call) {
      const units = countUnits(ask)
      const text = JSON.stringify(write(ask, units, call))
      return { units, headers: commonHeaders(call), body: { kind: 'whole', text } }
    },
  }
  return endpointAt(path, endpoint)
}
