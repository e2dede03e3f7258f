import type { Log } from '../base/log.ts'
import type { Verdict } from '../vendors/vendor.ts'
import { localCredential, type Channels } from './channels.ts'
import type { Resting } from './rests.ts'

type Parts = { readonly channels: () => Channels; readonly log: Log }

const whatToDo =
  'a vendor refuses a key, or the account of that key has no credit: fix it at the vendor, or give another key, ' +
  'which takes effect at once in turnpike.yaml, and at the next start in a variable'

/**
 * Lets a key rest for as long as its vendor's verdict says. A key over its rate rests only for the model that was asked
 * for, because vendors count each model by itself. Only the operator can mend a refused key, so that is logged: once
 * when the rest begins, and not for each of the requests that were under way. A server that needs no key refuses one
 * model, as Ollama does with those in its cloud, and serves the others.
 */
export function restCredential(
  { channels, log }: Parts,
  resting: Resting,
  { error, restCredentialSeconds }: Pick<Verdict, 'error' | 'restCredentialSeconds'>,
  status: number,
): void {
  if (restCredentialSeconds === undefined) return
  const { channel, credential } = resting
  const isOfRate = error.kind === 'too-many'
  if (credential === localCredential && !isOfRate) return
  const hasBegun = channels().rest(isOfRate ? resting : { channel, credential }, restCredentialSeconds)
  // A key over its rate is mended by the rest itself, so the operator has nothing to do.
  if (!hasBegun || isOfRate) return
  const { id, vendor, credentials } = channel
  const key = `${credentials.indexOf(credential) + 1} of ${credentials.length}`
  log.error({ channel: id, vendor: vendor.id, key, status, restSeconds: restCredentialSeconds }, whatToDo)
}
