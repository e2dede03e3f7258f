import { GatewayError } from '../base/errors.ts'
import type { ReadBody, ReceivedRequest } from '../capabilities/ask.ts'
import type { Capability } from '../capabilities/capability.ts'
import type { ModelTraits } from '../capabilities/limits.ts'
import type { Model, ModelsOnOffer } from '../catalogue/model.ts'
import { findModelFor } from './find-model.ts'
import type { Limited } from './stages.ts'
import { traitsOf } from './traits.ts'

/** Reads a request as its path does, and finds the model it names, all by one snapshot of the models. */
export function readAsked<T>(
  { body, files, bytes }: ReadBody,
  from: Pick<Limited, 'header' | 'principal'>,
  among: { readonly models: () => ModelsOnOffer; readonly capability: Capability },
  read: (asked: ReceivedRequest, lookUp: (id: string) => ModelTraits) => T,
): { read: T; model: Model } {
  const models = among.models()
  let model: Model | undefined
  const asked = { body, files, bodyBytes: bytes, header: from.header }
  const made = read(asked, (id) => {
    model = findModelFor(among.capability, models, from.principal, id)
    return traitsOf(model, id)
  })
  if (model === undefined) throw new GatewayError('bug', 'a request was read without its model')
  return { read: made, model }
}
