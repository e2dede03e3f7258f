import type { Log } from '../../base/log.ts'
import { sealText, unsealText } from '../../base/seal.ts'
import { keyFor } from '../../base/secret.ts'
import type { Actor } from '../../store/audit.ts'
import type { Store } from '../../store/open.ts'
import { addFirstSecret, replaceSecret, sealedSecrets } from '../../store/webhook-secrets.ts'
import { makeWebhookSecret } from './sign.ts'

/** The secrets that sign accounts' events. They are sealed in the database, not hashed, because signing needs them. */
export type WebhookSecrets = {
  /** A new secret, shown only this once. Undefined where there is no such account. */
  replace(accountId: string, actor: Actor): Promise<string | undefined>
  /** The secrets that sign now; none where they were sealed under another installation secret. */
  valid(accountId: string): Promise<readonly string[]>
}

/** How long an old secret stays valid beside the new one: a day is enough to update every receiver. */
const keepOldSecretMs = 24 * 60 * 60 * 1000
// Each adds a signature to every request. An account that replaces its secret more often in a day loses the oldest.
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

  // Many events of an account without a secret may be due at once; the first one makes it for all of them.
  const making = new Map<string, Promise<void>>()
  function makeFirst(accountId: string): Promise<void> {
    const underWay = making.get(accountId)
    if (underWay !== undefined) return underWay
    const made = addWhereNone(accountId).finally(() => making.delete(accountId))
    making.set(accountId, made)
    return made
  }
  // The caller's read may be older than a secret that was made in the meantime, so this reads once more.
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
      // No event is sent unsigned. This first secret is never shown: a customer who wants to verify gets a new one.
      await makeFirst(accountId)
      return (await read(accountId)).secrets
    },
  }
}
