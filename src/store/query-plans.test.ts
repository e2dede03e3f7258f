import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { plansOf } from '../../test/support/plans.ts'
import { writeFreshSqlite } from '../../test/support/sqlite.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { dropOldAnswers } from './idempotency.ts'
import { recoverHolds } from './ledger.ts'
import { openStore, type Store } from './open.ts'
import * as outbox from './outbox.ts'
import * as claims from './task-claims.ts'
import { listKeys } from './keys.ts'
import { heldByTasks, listTasks } from './task-lists.ts'
import { dropOldTasks } from './task-retention.ts'
import { listRequests } from './request-lists.ts'
import { listEvents } from './webhooks.ts'

const [now, mode, owner] = [1_000_000, 'sandbox', 'node_a'] as const
const accounts = [{ accountId: 'acc_a', host: 'x.example' }]
const except = { hosts: ['x.example'], lanes: accounts, unproven: 'all', proven: accounts } as const

/** What a node does by itself, be it every second or once a day, and after its clock was set back. */
const work = {
  'looks for due tasks': ({ db }) => claims.dueChannels(db, { now, mode }),
  'looks for watched tasks': ({ db }) => claims.hasWatchedTasks(db, mode),
  'counts watched tasks': ({ db }) => claims.countWatchedTasks(db, { now, mode }),
  'claims tasks': (store) =>
    claims.claimTasks(store, { channel: 'first', limit: 9, now, mode, claim: { owner, until: now } }),
  'releases claims on tasks': ({ db }) => claims.releaseClaims(db, owner, now),
  'brings tasks forward': ({ db }) => claims.bringForward(db, { owner, now, ms: 1 }),
  'adds up what tasks hold': ({ db }) => heldByTasks(db, { accountId: 'acc_a', keyId: 'key_a' }),
  'drops old tasks': (store) => dropOldTasks(store, { endedBefore: now, mode, limit: 9 }),
  'looks for due events': ({ db }) => outbox.dueEvents(db, { now, mode, limit: 9, except }),
  'looks for waiting events': ({ db }) => outbox.hasWaitingEvents(db, mode),
  'counts waiting events': ({ db }) => outbox.countWaitingEvents(db, { now, mode }),
  'gives up overdue events': ({ db }) => outbox.giveUpOverdue(db, { now, mode, madeBefore: now, dueBefore: now }),
  'releases claims on events': ({ db }) => outbox.releaseClaimsOf(db, { owner, now, putOffMsMax: 1 }),
  'brings events forward': ({ db }) => outbox.bringForward(db, { now, ms: 1 }),
  'ends overdue holds': (store) => recoverHolds(store, { now }),
  'drops old answers': ({ db }) => dropOldAnswers(db, now),
} as const satisfies Record<string, (store: Store) => Promise<unknown>>

/** The lists of an operator, each of all accounts of a mode. */
const [all, page] = [{ scope: 'every-account', mode }, { limit: 9 }] as const
const lists = {
  keys: ({ db }) => listKeys(db, { ...all, ...page }),
  requests: ({ db }) => listRequests(db, all, page),
  tasks: ({ db }) => listTasks(db, all, page),
  webhooks: ({ db }) => listEvents(db, all, page),
} as const satisfies Record<string, (store: Store) => Promise<unknown>>

// Only SQLite plans a query without regard to how few rows there are, so it is asked.
describe('what a node does by itself, and what operators look at', () => {
  const file = join(temporaryFolder('plans'), 'turnpike.sqlite')
  let store: Store
  beforeAll(async () => {
    await writeFreshSqlite(file)
    store = await openStore({ file })
  })
  afterAll(() => store.close())

  test.each(Object.entries(work))('a node that %s goes through no whole table', async (_, job) => {
    const plans = await plansOf(file, store, job)
    expect(plans).not.toBeEmpty()
    for (const plan of plans) {
      expect(plan).not.toMatch(/^SCAN \w+$/m)
      // It would go through the accounts of the mode, one after another.
      expect(plan).not.toContain('SEARCH account USING INDEX account_name')
    }
  })

  test.each(Object.entries(lists))('a page of %s is read in its order, and no other row is', async (_, list) => {
    const plans = await plansOf(file, store, list)
    expect(plans).not.toBeEmpty()
    for (const plan of plans) expect(plan).not.toContain('USE TEMP B-TREE FOR ORDER BY')
  })
})
