import { expect, test } from 'bun:test'
import { sql } from 'kysely'
import { eachEngine } from '../../test/support/engines.ts'
import { attemptOf, fundedAccount, holdOf, requestOf, accountId } from '../../test/support/ledger.ts'
import { nano } from '../base/money.ts'
import { takeHold } from './holds.ts'
import { settleHold } from './ledger.ts'

eachEngine('attempts from before they knew whether they were delivered', (open, place) => {
  test('are taken for delivered where they cost something', async () => {
    const at = await place()
    const before = await open({ at })
    await fundedAccount(before)
    await takeHold(before, holdOf('hold_a', 100n))
    const attempts = [attemptOf('failed', 0n, { delivered: false }), attemptOf('paid', 10n, { delivered: true })]
    const settlement = {
      hold: { id: 'hold_a', accountId },
      basis: 'vendor',
      usage: {},
      request: requestOf('a'),
    } as const
    await settleHold(before, { ...settlement, price: nano(20n), attempts })
    // As that release had left it.
    await sql`alter table attempt drop column delivered`.execute(before.db)
    await sql`delete from kysely_migration where name = '0006-delivered'`.execute(before.db)

    const now = await open({ at })
    const rows = await now.db.selectFrom('attempt').select(['id', 'delivered']).orderBy('id').execute()
    expect(rows.map(({ id, delivered }) => [id, delivered])).toEqual([
      ['att_failed', false],
      ['att_paid', true],
    ])
  })
})
