import { silentLog } from '../base/log.ts'
import { readMoment, momentRule } from '../reports/query.ts'
import {
  eventStates,
  reportWebhook,
  reportWebhooks,
  storedState,
  type ShownEvent,
  type ShownState,
} from '../reports/webhooks.ts'
import { resendEvent } from '../store/webhooks.ts'
import { makeWebhookSecrets } from '../tasks/webhooks/secrets.ts'
import { accountNamed } from './accounts.ts'
import { secretOf, withInstallation, type InstallationOptions } from './installation.ts'
import { say, sayJson, showTime, table, type Column } from './output.ts'

type Options = InstallationOptions & { readonly json?: boolean }

type Listed = {
  readonly account?: string
  readonly task?: string
  readonly state?: string
  readonly from?: string
  readonly to?: string
  readonly limit: string
  readonly after?: string
}

const pageSizeMax = 100
const actor = 'cli'

/** `turnpike webhooks list` */
export async function list(options: Options & Listed): Promise<void> {
  const { account, task, after } = options
  const limit = Number(options.limit)
  if (!/^\d{1,3}$/.test(options.limit) || limit < 1 || limit > pageSizeMax) {
    throw new Error(`--limit takes a number from 1 to ${pageSizeMax}`)
  }
  const state = stateFrom(options.state)
  const [from, to] = [momentFrom(options.from), momentFrom(options.to)]
  await withInstallation(options, async ({ store, mode }) => {
    const scope =
      account === undefined ? ('every-account' as const) : { accountId: (await accountNamed(store, mode, account)).id }
    const filter = {
      scope,
      mode,
      ...(task !== undefined && { taskId: task }),
      ...(state !== undefined && { state: storedState(state) }),
      ...(from !== undefined && { from }),
      ...(to !== undefined && { to }),
    }
    const page = await reportWebhooks(store.db, filter, { limit, ...(after !== undefined && { after }) })
    if (options.json) return sayJson(page)
    if (page.data.length === 0) return say(`There is no such webhook in ${mode} mode.`)
    say(table(columns, page.data))
    if (page.next !== null) say(`More: --after ${page.next}`)
  })
}

/** `turnpike webhooks resend` */
export async function resend(id: string, options: Pick<Options, 'json'>): Promise<void> {
  // An event's id says enough: the mode is its account's.
  await withInstallation({ mode: 'real' }, async ({ store }) => {
    const event = await resendEvent(store, { id, actor })
    if (event === undefined) throw new Error(`there is no webhook "${id}"; turnpike webhooks list shows their ids`)
    if (options.json) return sayJson(await reportWebhook(store.db, event))
    say(`${id} is due now: a running gateway sends it within a few seconds.`)
  })
}

/** `turnpike webhooks secret` */
export async function secret(nameOrId: string, options: Options): Promise<void> {
  await withInstallation(options, async ({ environment, store, mode }) => {
    const account = await accountNamed(store, mode, nameOrId)
    const secrets = makeWebhookSecrets({ store, secret: secretOf(environment), log: silentLog })
    const made = await secrets.replace(account.id, actor)
    if (made === undefined) throw new Error(`there is no account "${nameOrId}"`)
    if (options.json) return sayJson({ secret: made })
    say(`The new webhook secret of "${account.name}" (shown only now; Turnpike keeps it sealed):`)
    say(`  ${made}`)
    say()
    say('The one before it, if there was one, is valid for 24 hours more: until then every webhook is signed by both.')
  })
}

const columns: readonly Column<ShownEvent>[] = [
  { name: 'TIME', show: ({ created_at: at }) => showTime(at * 1000) },
  { name: 'STATE', show: ({ state }) => state },
  { name: 'TYPE', show: ({ type }) => type },
  { name: 'ATTEMPTS', align: 'right', show: ({ attempts }) => String(attempts.length) },
  { name: 'LAST', show: last },
  { name: 'NEXT', show: ({ next_attempt_at: at }) => (at === null ? '-' : showTime(at * 1000)) },
  { name: 'HOST', show: ({ url }) => new URL(url).host },
  { name: 'TASK', show: ({ task }) => task },
  { name: 'ID', show: ({ id }) => id },
]

function last({ attempts }: ShownEvent): string {
  const attempt = attempts.at(-1)
  return attempt === undefined ? '-' : String(attempt.status ?? attempt.error)
}

function stateFrom(text: string | undefined): ShownState | undefined {
  const state = eventStates.find((known) => known === text)
  if (text !== undefined && state === undefined) throw new Error(`--state takes one of ${eventStates.join(', ')}`)
  return state
}

function momentFrom(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const at = readMoment(text)
  if (at === undefined) throw new Error(`"${text}" is no time: write ${momentRule}`)
  return at
}
