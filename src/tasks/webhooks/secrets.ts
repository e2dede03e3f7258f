import type { Log } from '../../base/log.ts'
import { sealText, unsealText } from '../../base/seal.ts'
import { keyFor } from '../../base/secret.ts'
import type { Actor } from '../../store/audit.ts'
import type { Store } from '../../store/open.ts'
import { addFirstSecret, replaceSecret, sealedSecrets } from '../../store/webhook-secrets.ts'
import { makeWebhookSecret } from './sign.ts'

/** The secrets that sign accounts' events: sealed in the database, since signing needs them as they are. */
export type WebhookSecrets = {
  /** A new one, shown this once. Undefined where there is no such account. */
  replace(accountId: string, actor: Actor): Promise<string | undefined>
  /** Those that sign now. None where they were sealed under another installation secret. */
  valid(accountId: string): Promise<readonly string[]>
}

/** What an old secret is good for beside the new one: a day is enough to tell every receiver. */
const keepOldSecretMs = 24 * 60 * 60 * 1000
// Each is a signature in every request. Whoever replaces secrets more often than this in a day loses the oldest.
const liveMax = 5

export function makeWebhookSecrets(parts: { store: Store; secret: Uint8Array; log: Log }): WebhookSecrets {
  const { store, log } = parts
  const key = keyFor(parts.secret, 'webhook-secret')
  const newSealed = (accountId: string) => {
    const secret = makeWebhookSecret()
    return { secret, sealed: sealText(secret, key, accountId) }
  }

  async function read(accountId: string): Promise<{ secrets: string[]; found: number }> {
    const sealed = await sealedSecrets(store.db, accountId, store.now())
    const secrets: string[] = []
    for (const each of sealed) {
      try {
        secrets.push(unsealText(each, key, accountId))
      } catch {
        log.error({ account: accountId }, 'a webhook secret cannot be read: TURNPIKE_SECRET has changed')
      }
    }
    return { secrets, found: sealed.length }
  }

  // Many events of an account without a secret may be due at once, and one maker is enough for them.
  const making = new Map<string, Promise<void>>()
  function makeFirst(accountId: string): Promise<void> {
    const underWay = making.get(accountId)
    if (underWay !== undefined) return underWay
    const made = addWhereNone(accountId).finally(() => making.delete(accountId))
    making.set(accountId, made)
    return made
  }
  // Whoever looked before the maker was done may hear of it after: who comes that late looks once more, and finds it.
  async function addWhereNone(accountId: string): Promise<void> {
    if ((await read(accountId)).found > 0) return
    await addFirstSecret(store, { accountId, sealed: newSealed(accountId).sealed, actor: 'webhooks' })
  }

  return {
    async replace(accountId, actor) {
      const { secret, sealed } = newSealed(accountId)
      const outcome = await replaceSecret(store, { accountId, sealed, actor, keepOldMs: keepOldSecretMs, liveMax })
      return outcome === 'absent' ? undefined : secret
    },

    async valid(accountId) {
      const { secrets, found } = await read(accountId)
      if (found > 0) return secrets
      // Nothing leaves unsigned. Whoever wants to check asks for a secret first, and gets another one.
      await makeFirst(accountId)
      return (await read(accountId)).secrets
    },
  }
}
