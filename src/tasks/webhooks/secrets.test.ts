import { beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { eachEngine } from '../../../test/support/engines.ts'
import { putAccount } from '../../../test/support/outbox.ts'
import { silentLog } from '../../base/log.ts'
import { listAudit } from '../../store/audit.ts'
import type { Store } from '../../store/open.ts'
import { makeWebhookSecrets } from './secrets.ts'

setDefaultTimeout(120_000)

const secret = Buffer.from('an installation secret of enough bytes')

/** The secrets of one node, and how many transactions it has begun. */
function startNode(store: Store) {
  const made = { transactions: 0 }
  const transaction: Store['transaction'] = (work) => {
    made.transactions++
    return store.transaction(work)
  }
  const secrets = makeWebhookSecrets({ store: { ...store, transaction }, secret, log: silentLog })
  return Object.assign(made, { secrets })
}

/** A store that withholds the result of its first query until it is released. */
function firstAnswerLate(store: Store): { slow: Store; release: () => void } {
  const released = Promise.withResolvers<void>()
  let first: object | undefined
  const db = store.db.withPlugin({
    transformQuery({ node, queryId }) {
      first ??= queryId
      return node
    },
    // By the query and not by the order of results: PostgreSQL may answer a later query before it.
    async transformResult({ result, queryId }) {
      if (queryId === first) await released.promise
      return result
    },
  })
  return { slow: { ...store, db }, release: released.resolve }
}

eachEngine('the first secret of an account', (open, place, engine) => {
  let stores: Store[]
  let nodes: ReturnType<typeof startNode>[]

  beforeEach(async () => {
    const at = await place()
    stores = [await open({ at }), await open({ at })]
    nodes = stores.map(startNode)
  })

  const newAccount = async () => putAccount(stores[0] as Store)
  const together = <T>(work: (node: (typeof nodes)[number]) => Promise<T>) => Promise.all(nodes.map(work))
  /** The secrets that have not been replaced. */
  const current = async (accountId: string) => {
    const all = stores[0]?.db.selectFrom('webhook_secret').select('id').where('account_id', '=', accountId)
    return all?.where('expires_at', 'is', null).execute()
  }

  test('the first secret is made once, however many deliveries on two nodes need it at once', async () => {
    const accountId = await newAccount()
    const needed = await together(({ secrets }) =>
      Promise.all(Array.from({ length: 20 }, () => secrets.valid(accountId))),
    )
    const [first] = needed.flat()
    expect(first).toHaveLength(1)
    for (const each of needed.flat()) expect(each).toEqual(first ?? [])
    for (const { transactions } of nodes) expect(transactions).toBeLessThanOrEqual(1)
    const audited = (await listAudit((stores[0] as Store).db, { limit: 10 })).map(({ action }) => action)
    expect(audited.filter((action) => action === 'webhook-secret.create')).toHaveLength(1)
  })

  test('a lookup that is answered late gets the secret that was made meanwhile', async () => {
    const accountId = await newAccount()
    const [store] = stores as [Store]
    const { slow, release } = firstAnswerLate(store)
    const node = startNode(slow)
    const late = node.secrets.valid(accountId)
    const made = await node.secrets.valid(accountId)
    release()
    expect(await late).toEqual(made)
    expect(node.transactions).toBe(1)
  })

  test('a replacement made at the same time is valid, and a single secret is current', async () => {
    for (let round = 0; round < 20; round++) {
      const accountId = await newAccount()
      const [one, other] = nodes
      const [, shown] = await Promise.all([one?.secrets.valid(accountId), other?.secrets.replace(accountId, 'test')])
      expect(await one?.secrets.valid(accountId)).toContain(shown ?? '')
      expect(await current(accountId)).toHaveLength(1)
    }
  })

  test('no secret is made for an unknown account', async () => {
    expect(await nodes[0]?.secrets.valid('acc_none')).toEqual([])
  })

  test('a replaced secret stays valid for a day, in its own account', async () => {
    const [accountId, other] = [await newAccount(), await newAccount()]
    const [store] = stores as [Store]
    let passed = 0
    const { secrets } = startNode({ ...store, now: () => store.now() + passed })
    const replace = async (of: string) => {
      passed++ // the order of two secrets made in the same millisecond would be undefined
      return (await secrets.replace(of, 'test')) ?? ''
    }
    const [first, others, second] = [await replace(accountId), await replace(other), await replace(accountId)]
    expect(await secrets.valid(accountId)).toEqual([second, first])
    passed += 23 * 3_600_000
    // A replaced secret stays valid for its day, whatever replacements follow.
    const third = await replace(accountId)
    expect(await secrets.valid(accountId)).toEqual([third, second, first])
    passed += 3_600_000
    expect(await secrets.valid(accountId)).toEqual([third, second])
    expect(await current(other)).toHaveLength(1)
    // At most five stay valid, the newest; the secrets of another account do not count among them.
    const newest: string[] = []
    for (let more = 0; more < 5; more++) newest.unshift(await replace(accountId))
    const another = await replace(other)
    newest.unshift(await replace(accountId))
    expect(await secrets.valid(accountId)).toEqual(newest.slice(0, 5))
    expect(await secrets.valid(other)).toEqual([another, others])
    expect(await secrets.valid(await newAccount())).toHaveLength(1)
  })

  // SQLite has one writer at a time, so there is nothing to test.
  if (engine === 'postgres') {
    test('a secret can be made while the account is being billed', async () => {
      const accountId = await newAccount()
      await stores[1]?.transaction(async (tx) => {
        await tx
          .updateTable('account')
          .set((eb) => ({ held: eb.ref('held') }))
          .where('id', '=', accountId)
          .execute()
        expect(await nodes[0]?.secrets.valid(accountId)).toHaveLength(1)
      })
    })
  }
})
