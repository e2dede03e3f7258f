import { keyState, showKey } from '../admin/show.ts'
import { newId } from '../base/ids.ts'
import { hintOf } from '../keys/secret-keys.ts'
import { allows } from '../keys/scope.ts'
import { insertKey, keyById, listKeys, revokeKey, type ApiKey } from '../store/keys.ts'
import type { Store } from '../store/open.ts'
import type { Scope } from '../store/schema.ts'
import { accountNamed, allAccounts } from './accounts.ts'
import { readExpiry } from './expiry.ts'
import { secretKeysOf, withInstallation, type InstallationOptions } from './installation.ts'
import { say, sayJson, sheet, showTime, table, warn, type Column } from './output.ts'

type Options = InstallationOptions & { readonly json?: boolean }

const actor = 'cli'

/** `turnpike keys create` */
export async function create(
  options: Options & { account: string; name?: string; models?: string; expires?: string },
): Promise<void> {
  const models = options.models === undefined ? null : readPatterns(options.models)
  const expiresAt = options.expires === undefined ? null : readExpiry(options.expires, Date.now())
  await withInstallation(options, async ({ environment, store, mode, plan }) => {
    const account = await accountNamed(store, mode, options.account)
    if (models !== null) warnOfStrays(models, [...(await plan()).catalogue.models.keys()])
    const secretKeys = secretKeysOf(environment)
    const key = secretKeys.make('sk')
    const made = await insertKey(store, {
      id: newId('key'),
      accountId: account.id,
      digest: secretKeys.digest(account.mode, key),
      hint: hintOf(key),
      actor,
      models,
      expiresAt,
      ...(options.name !== undefined && { name: options.name }),
    })
    const row = { key: made, account: account.name }
    if (options.json) return sayJson({ ...show(row), key })
    say('The new key (shown only now; Turnpike keeps a keyed hash of it):')
    say(`  ${key}`)
    say()
    say(sheet({ id: made.id, account: `${account.name} (${account.mode})`, models: scope(row), expires: expiry(row) }))
  })
}

/** `turnpike keys list` */
export async function list(options: Options & { account?: string }): Promise<void> {
  await withInstallation(options, async ({ store, mode }) => {
    const accounts =
      options.account === undefined
        ? await allAccounts(store, mode)
        : [await accountNamed(store, mode, options.account)]
    const names = new Map(accounts.map(({ id, name }) => [id, name]))
    const only = options.account === undefined ? undefined : accounts[0]
    const keys = await allKeys(store, only === undefined ? 'every-account' : { accountId: only.id })
    const rows = keys.flatMap((key) => {
      const account = names.get(key.accountId)
      return account === undefined ? [] : [{ key, account }]
    })
    if (options.json) return sayJson({ data: rows.map(show) })
    if (rows.length === 0) return say(`There is no such key in ${mode} mode.`)
    say(table(columns, rows))
  })
}

/** `turnpike keys revoke` */
export async function revoke(id: string, options: Pick<Options, 'json'>): Promise<void> {
  // A key's id says enough: the mode is its account's, whichever the gateway runs in.
  await withInstallation({ mode: 'real' }, async ({ store }) => {
    const done = await revokeKey(store, { id, actor })
    const known = done ? undefined : await keyById(store.db, id)
    if (!done && known === undefined) throw new Error(`there is no key "${id}"; turnpike keys list shows their ids`)
    if (options.json) return sayJson({ id, revoked: true })
    say(done ? `${id} is revoked: every node refuses it within 5 seconds.` : `${id} was revoked already.`)
  })
}

const pageSize = 500

async function allKeys(store: Store, scope: Scope): Promise<ApiKey[]> {
  const found: ApiKey[] = []
  for (;;) {
    const last = found.at(-1)
    const page = await listKeys(store.db, { scope, limit: pageSize, ...(last !== undefined && { after: last.id }) })
    found.push(...page)
    if (page.length < pageSize) return found.toSorted((a, b) => a.createdAt - b.createdAt)
  }
}

type Row = { readonly key: ApiKey; readonly account: string }

const columns: readonly Column<Row>[] = [
  { name: 'ACCOUNT', show: ({ account }) => account },
  { name: 'NAME', show: ({ key }) => key.name || '-' },
  { name: 'KEY', show: ({ key }) => `sk-…${key.hint}` },
  { name: 'STATE', show: ({ key }) => keyState(key, Date.now()) },
  { name: 'MODELS', show: scope },
  { name: 'EXPIRES', show: expiry },
  { name: 'CREATED', show: ({ key }) => showTime(key.createdAt) },
  { name: 'ID', show: ({ key }) => key.id },
]

function scope({ key }: Row): string {
  return key.models === null ? 'all' : key.models.join(', ')
}

function expiry({ key }: Row): string {
  return key.expiresAt === null ? 'never' : showTime(key.expiresAt)
}

function show({ key, account }: Row) {
  return showKey(key, account, Date.now())
}

function readPatterns(text: string): string[] {
  const patterns = text.split(',').map((pattern) => pattern.trim())
  if (patterns.some((pattern) => pattern === '')) {
    throw new Error("--models takes ids or patterns with commas between them, such as 'gpt-*,o3'")
  }
  return patterns
}

/** Not an error: tomorrow's catalogue may have the model, and a key that allows too little is safe. */
function warnOfStrays(patterns: readonly string[], models: readonly string[]): void {
  for (const pattern of patterns) {
    if (!models.some((model) => allows([pattern], model))) warn(`no model is called like "${pattern}" now`)
  }
}
