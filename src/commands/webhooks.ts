import { silentLog } from '../base/log.ts'
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
import { actor, inEitherMode, secretOf, withInstallation, type InstallationOptions as Options } from './installation.ts'
import { accountColumn, readFilter, readPage, sayPage, type FilterOptions, type PageOptions } from './listing.ts'
import { say, sayJson, showTime, type Column } from './output.ts'

type Listed = FilterOptions & PageOptions & { readonly task?: string; readonly state?: string }

/** `turnpike webhooks list` */
export async function list(options: Options & Listed): Promise<void> {
  const { task, json } = options
  const asked = readPage(options)
  const state = stateFrom(options.state)
  await withInstallation(options, async ({ store, mode }) => {
    const filter = {
      ...(await readFilter(store, mode, options)),
      taskId: task,
      state: state && storedState(state),
    }
    const page = await reportWebhooks(store.db, filter, asked)
    sayPage(page, {
      json,
      columns: columns(await accountColumn(store, page.data)),
      nothing: `No webhooks were found in ${mode} mode.`,
    })
  })
}

/** `turnpike webhooks resend` */
export async function resend(id: string, options: Pick<Options, 'json'>): Promise<void> {
  await inEitherMode({}, async ({ store }) => {
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
    const sealedUnder = await secretOf({ environment, store })
    const secrets = makeWebhookSecrets({ store, secret: sealedUnder, log: silentLog })
    const made = await secrets.replace(account.id, actor)
    if (made === undefined) throw new Error(`there is no account "${nameOrId}"`)
    if (options.json) return sayJson({ secret: made })
    say(`The new webhook secret of "${account.name}" (shown only now; Turnpike keeps it sealed):`)
    say(`  ${made}`)
    say()
    say('The one before it, if there was one, is valid for 24 hours more: until then every webhook is signed by both.')
  })
}

const columns = (whose: Column<ShownEvent>): Column<ShownEvent>[] => [
  { name: 'TIME', show: ({ created_at: at }) => showTime(at * 1000) },
  whose,
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
