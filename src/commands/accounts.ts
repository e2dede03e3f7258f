import { creditMax, creditNote, nameRule, noteCharactersMax, readName } from '../admin/fields.ts'
import { showAccount } from '../admin/show.ts'
import { unreachable } from '../base/errors.ts'
import { newId } from '../base/ids.ts'
import { parseDollars, showDollars, zeroNano, type Nano } from '../base/money.ts'
import {
  available,
  changeAccount,
  createAccount,
  credit,
  creditSourceIn,
  findAccount,
  listAccounts,
  type Account,
  type AccountChanged,
} from '../store/accounts.ts'
import type { Store } from '../store/open.ts'
import type { Mode } from '../store/schema.ts'
import { ifGiven, isTrue, mustChange, readCap, showCap } from './options.ts'
import { actor, withInstallation, type InstallationOptions as Options } from './installation.ts'
import { accountToPaste, say, sayJson, sheet, showTime, table, type Column } from './output.ts'

/** `turnpike accounts create` */
export async function create(options: Options & { name: string; credit?: string; unlimited?: boolean }): Promise<void> {
  const name = nameFrom(options.name)
  const amount = ifGiven(options.credit, readAmount) ?? zeroNano
  if (amount < 0n) throw new Error('--credit of a new account must not be negative')
  await withInstallation(options, async ({ store, mode }) => {
    const made = await createAccount(store, {
      id: newId('acc'),
      name,
      mode,
      actor,
      unlimited: options.unlimited ?? false,
      credit: { amount, source: creditSourceIn(mode) },
    })
    if (made.outcome === 'name-taken') throw new Error(`there is an account "${name}" in ${mode} mode already`)
    if (options.json) return sayJson(showAccount(made.account))
    say(describe(made.account))
    say()
    say(`Make a key for it with: npx turnpike keys create --account ${accountToPaste(made.account)}`)
  })
}

/** `turnpike accounts change`: changes only the given fields. */
export async function change(
  nameOrId: string,
  options: Options & { name?: string; cap?: string; enabled?: string; unlimited?: string },
): Promise<void> {
  const { name, cap, enabled, unlimited } = options
  mustChange({ name, cap, enabled, unlimited })
  await withInstallation(options, async ({ store, mode }) => {
    const account = await accountNamed(store, mode, nameOrId)
    const changed = await changeAccount(store, {
      id: account.id,
      actor,
      name: ifGiven(name, nameFrom),
      cap: ifGiven(cap, readCap),
      enabled: ifGiven(enabled, isTrue),
      unlimited: ifGiven(unlimited, isTrue),
    })
    if (changed.outcome !== 'changed') throw new Error(whyUnchanged(changed, account))
    if (options.json) return sayJson(showAccount(changed.account))
    say(describe(changed.account))
  })
}

function whyUnchanged(outcome: Exclude<AccountChanged, { outcome: 'changed' }>, { name, mode }: Account): string {
  switch (outcome.outcome) {
    case 'name-taken':
      return `there is another account of that name in ${mode} mode already`
    case 'below-zero': {
      const [balance, held] = [showDollars(outcome.posted), showDollars(outcome.held)]
      return outcome.posted < 0n
        ? `"${name}" has a balance of ${balance}: credit it before making it limited`
        : `"${name}" has a balance of ${balance}, and ${held} is held: wait until less is held, or credit it first`
    }
    case 'absent':
      return `there is no account "${name}" any more`
    default:
      return unreachable(outcome)
  }
}

/** `turnpike accounts list` */
export async function list(options: Options): Promise<void> {
  await withInstallation(options, async ({ store, mode }) => {
    const accounts = await allAccounts(store, mode)
    if (options.json) return sayJson({ data: accounts.map(showAccount) })
    if (accounts.length === 0) return say(`There is no account in ${mode} mode yet.`)
    say(table(columns, accounts))
  })
}

/** `turnpike accounts credit` */
export async function addCredit(
  nameOrId: string,
  amountText: string,
  options: Options & { note?: string },
): Promise<void> {
  const amount = readAmount(amountText)
  if (amount === zeroNano) throw new Error('a credit of nothing changes nothing')
  const note = ifGiven(options.note, readNote)
  await withInstallation(options, async ({ store, mode }) => {
    const account = await accountNamed(store, mode, nameOrId)
    const outcome = await credit(store, {
      accountId: account.id,
      amount,
      source: creditSourceIn(account.mode),
      actor,
      ...(note !== undefined && { note }),
    })
    switch (outcome.outcome) {
      case 'credited':
      case 'repeated':
        return options.json ? sayJson(showAccount(outcome.account)) : say(describe(outcome.account))
      case 'below-zero':
        throw new Error(`only ${showDollars(outcome.available)} can be taken from "${account.name}"`)
      case 'absent':
      case 'conflict':
        throw new Error(`the credit was not booked: ${outcome.outcome}`)
    }
  })
}

/** Finds the account that an operator names, by its id or its name in this mode. */
export async function accountNamed(store: Store, mode: Mode, nameOrId: string): Promise<Account> {
  const account = await findAccount(store.db, { mode, nameOrId })
  if (account !== undefined) return account
  const other = mode === 'real' ? 'sandbox' : 'real'
  const elsewhere = await findAccount(store.db, { mode: other, nameOrId })
  const advice =
    elsewhere === undefined ? 'turnpike accounts list shows them' : `there is one in ${other} mode: --mode ${other}`
  throw new Error(`there is no account "${nameOrId}" in ${mode} mode; ${advice}`)
}

export function allAccounts(store: Store, mode: Mode): Promise<Account[]> {
  return allPages((page) => listAccounts(store.db, { ...page, mode }))
}

const pageSize = 500

/** The whole of a list that is read page by page, the oldest first. */
export async function allPages<T extends { readonly id: string; readonly createdAt: number }>(
  read: (page: { readonly limit: number; readonly after?: string }) => Promise<readonly T[]>,
): Promise<T[]> {
  const found: T[] = []
  for (;;) {
    const last = found.at(-1)
    const page = await read({ limit: pageSize, ...(last !== undefined && { after: last.id }) })
    found.push(...page)
    if (page.length < pageSize) return found.toSorted((a, b) => a.createdAt - b.createdAt)
  }
}

const columns: readonly Column<Account>[] = [
  { name: 'NAME', show: ({ name }) => name },
  { name: 'BALANCE', align: 'right', show: ({ posted }) => showDollars(posted) },
  { name: 'HELD', align: 'right', show: ({ held }) => showDollars(held) },
  { name: 'CAP', align: 'right', show: ({ cap }) => showCap(cap) },
  { name: 'STATE', show: state },
  { name: 'CREATED', show: ({ createdAt }) => showTime(createdAt) },
  { name: 'ID', show: ({ id }) => id },
]

function describe(account: Account): string {
  return sheet({
    account: account.name,
    id: account.id,
    mode: account.mode,
    state: state(account),
    balance: showDollars(account.posted),
    available: account.unlimited ? 'unlimited' : showDollars(available(account)),
    cap: showCap(account.cap),
  })
}

function state({ enabled, unlimited }: Account): string {
  return [enabled ? 'enabled' : 'disabled', ...(unlimited ? ['unlimited'] : [])].join(', ')
}

function readAmount(text: string): Nano {
  const amount = parseDollars(text)
  if (amount === undefined) {
    throw new Error(`"${text}" is not an amount: write decimal dollars with up to nine decimals, such as 10 or -0.25`)
  }
  if (amount > creditMax || amount < 0n - creditMax) throw new Error(`at most ${showDollars(creditMax)} at a time`)
  return amount
}

function readNote(text: string): string {
  const { success, data } = creditNote.safeParse(text)
  if (!success) throw new Error(`--note takes at most ${noteCharactersMax} characters`)
  return data
}

export function nameFrom(text: string): string {
  const name = readName(text)
  if (name === undefined) throw new Error(`a name must have ${nameRule}`)
  return name
}
