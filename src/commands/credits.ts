import { showDollars } from '../base/money.ts'
import { reportCredits, type ShownCredit } from '../reports/credits.ts'
import { accountNamed } from './accounts.ts'
import { withInstallation, type InstallationOptions } from './installation.ts'
import { readPage, sayPage, type PageOptions } from './listing.ts'
import { showTime, type Column } from './output.ts'

/** `turnpike accounts credits`: what was paid in, newest first. */
export async function listCredits(nameOrId: string, options: InstallationOptions & PageOptions): Promise<void> {
  const asked = readPage(options)
  await withInstallation(options, async ({ store, mode }) => {
    const account = await accountNamed(store, mode, nameOrId)
    const page = await reportCredits(store.db, account.id, asked)
    sayPage(page, {
      json: options.json,
      columns: creditColumns,
      nothing: `Nothing was paid into "${account.name}" yet.`,
    })
  })
}

const creditColumns: readonly Column<ShownCredit>[] = [
  { name: 'TIME', show: ({ created_at: at }) => showTime(at * 1000) },
  { name: 'AMOUNT', align: 'right', show: ({ amount }) => showDollars(amount) },
  { name: 'SOURCE', show: ({ source }) => source },
  { name: 'NOTE', show: ({ note }) => note ?? '-' },
  { name: 'ID', show: ({ id }) => id },
]
