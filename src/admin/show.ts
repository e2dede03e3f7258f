import { unixSeconds, unixSecondsOrNull } from '../base/moment.ts'
import { formatDollars } from '../base/money.ts'
import { showCap, type Account } from '../store/accounts.ts'
import type { AuditRecord } from '../store/audit.ts'
import { showLimits, type ApiKey } from '../store/keys.ts'

/** Accounts and keys as operators see them, in the API and in the commands' `--json`. */
export function showAccount(account: Account) {
  return {
    id: account.id,
    name: account.name,
    mode: account.mode,
    balance: formatDollars(account.posted),
    held: formatDollars(account.held),
    unlimited: account.unlimited,
    enabled: account.enabled,
    cap: showCap(account.cap),
    created_at: unixSeconds(account.createdAt),
  }
}

/** Shows only the last four characters of the key itself, never the beginning of a secret. */
export function showKey(key: ApiKey, accountName: string, now: number) {
  return {
    id: key.id,
    account: key.accountId,
    account_name: accountName,
    name: key.name,
    hint: key.hint,
    models: key.models,
    limits: showLimits(key.limits),
    cap: showCap(key.cap),
    enabled: key.enabled,
    state: keyState(key, now),
    expires_at: unixSecondsOrNull(key.expiresAt),
    metadata: key.metadata,
    created_at: unixSeconds(key.createdAt),
  }
}

export function keyState({ revokedAt, enabled, expiresAt }: ApiKey, now: number) {
  if (revokedAt !== null) return 'revoked'
  if (!enabled) return 'disabled'
  return expiresAt !== null && expiresAt <= now ? 'expired' : 'enabled'
}

export function showAudit({ id, actor, action, subject, detail, at }: AuditRecord) {
  return { id, actor, action, subject, detail, created_at: unixSeconds(at) }
}
