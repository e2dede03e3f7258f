import { afterAll, afterEach, beforeAll, expect } from 'bun:test'
import { rmSync } from 'node:fs'
import { newId } from '../../src/base/ids.ts'
import { makeLog } from '../../src/base/log.ts'
import { formatDollars, nano, parseDollars, type Nano } from '../../src/base/money.ts'
import { databaseFile, readEnvironment } from '../../src/config/environment.ts'
import { readConfigFile } from '../../src/config/file.ts'
import { openGateway, type Gateway } from '../../src/gateway.ts'
import type { GatewayOptions } from '../../src/foundation.ts'
import { hintOf, makeSecretKeys } from '../../src/keys/secret-keys.ts'
import { createAccount } from '../../src/store/accounts.ts'
import { checkLedger } from '../../src/store/check.ts'
import { insertKey } from '../../src/store/keys.ts'
import { createSparseReserve } from './journal-room.ts'
import { coldStartMs, sharedPostgres } from './postgres.ts'
import { writeFreshSqlite } from './sqlite.ts'
import { temporaryFolder } from './temporary-folder.ts'

/** A line of the simulator's own bill. */
export type BillLine = {
  readonly ref: string
  readonly model: string
  readonly status: number
  readonly units: Readonly<Record<string, number>>
  readonly cost: string
}

/** What a simulated vendor was sent. */
export type SeenCall = {
  readonly vendor: string
  readonly path: string
  readonly ref: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Record<string, unknown>
  /** The body as received, with the digits that JSON parsing would round. */
  readonly text: string
}

export type TestGateway = Gateway & {
  /** A key of the first account, which has 100 dollars of play money. */
  readonly key: string
  readonly adminKey: string
  readonly accountId: string
  /** Where it keeps its files. */
  readonly folder: string
  /** Everything the gateway logged. */
  readonly logged: string[]
  /** A new account with its own key. */
  account(options?: {
    dollars?: string
    models?: readonly string[]
    expiresAt?: number
    /** A key that the test chooses, for keys that resemble each other. */
    key?: string
  }): Promise<{ id: string; key: string; keyId: string }>
  bill(): Promise<BillLine[]>
  calls(): Promise<SeenCall[]>
  /** How many calls there were. Listing them is slow if their bodies have megabytes. */
  callCount(): Promise<number>
  /** POSTs a JSON body with the first account's key. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>
  balance(accountId?: string): Promise<{ posted: Nano; held: Nano }>
  /**
   * The standing assertions, once every hold has ended: the ledger balances, and every attempt cost what the
   * simulator's bill says (estimated ones are only checked to cost something). Call it after every test that could move
   * money.
   */
  assertBooks(): Promise<void>
}

// Longer than a busy machine keeps a request waiting for PostgreSQL; the product would refuse it earlier.
const databaseWaitMs = 20_000

const secret = 'test-secret-test-secret-test-secret'

export async function startTestGateway(
  options: {
    engine?: 'sqlite' | 'postgres'
    /** How money is booked; `yaml` must not set it as well. */
    mode?: 'strict' | 'leased'
    yaml?: string
    variables?: Record<string, string>
    /** Further environment variables of the gateway, beside those of every test. */
    environment?: Record<string, string>
    databaseUrl?: string
    /** Requests are refused as early as in production, for tests of a slow or unavailable database. */
    impatient?: true
  } & Pick<GatewayOptions, 'clock' | 'billing'> = {},
): Promise<TestGateway> {
  const folder = temporaryFolder('gateway')
  const secretKeys = makeSecretKeys(Buffer.from(secret))
  const key = secretKeys.make('sk')
  const adminKey = secretKeys.make('adm')
  const logged: string[] = []
  const databaseUrl =
    options.databaseUrl ?? (options.engine === 'postgres' ? await (await sharedPostgres()).freshDatabase() : undefined)
  const environment = readEnvironment({
    PORT: '0',
    ADMIN_PORT: '0',
    TURNPIKE_ADMIN_KEY: adminKey,
    TURNPIKE_DATA: folder,
    TURNPIKE_SECRET: secret,
    TURNPIKE_BOOTSTRAP_KEY: key,
    ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }),
    ...options.environment,
  })
  createSparseReserve(folder)
  if (databaseUrl === undefined) await writeFreshSqlite(databaseFile({ dataFolder: folder }))
  const { clock, billing } = options
  const gateway = await openGateway({
    environment,
    file: readConfigFile(
      'test.yaml',
      `${options.yaml ?? ''}\nbilling: { mode: ${options.mode ?? 'strict'} }\n`,
      options.variables ?? {},
    ),
    variables: options.variables ?? {},
    log: makeLog({ level: 'info', write: (line) => logged.push(line) }),
    ...(clock !== undefined && { clock }),
    ...(billing !== undefined && { billing }),
    localVendors: [],
    ...(options.impatient !== true && { waitMs: databaseWaitMs }),
  })
  const { store, mode } = gateway
  const accountId = gateway.firstStart.account.id

  async function askSandbox<T>(path: string): Promise<T> {
    if (gateway.sandboxUrl === undefined) throw new Error('there is no simulator in real mode')
    return (await fetch(gateway.sandboxUrl + path)).json() as Promise<T>
  }

  const control = async <T>(path: string) => (await askSandbox<{ data: T[] }>(path)).data

  const bill = () => control<BillLine>('/__bill')
  return {
    ...gateway,
    key,
    adminKey,
    accountId,
    folder,
    logged,
    bill,
    calls: () => control<SeenCall>('/__calls'),
    callCount: async () => (await askSandbox<{ count: number }>('/__calls?count')).count,
    post: (path, body, headers = {}) =>
      fetch(gateway.url + path, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    async account({ dollars = '1', models, expiresAt, key: made = secretKeys.make('sk') } = {}) {
      const id = newId('acc')
      const amount = parseDollars(dollars) ?? nano(0n)
      await createAccount(store, { id, name: id, mode, actor: 'test', credit: { amount, source: 'promo' } })
      const keyId = newId('key')
      await insertKey(store, {
        id: keyId,
        accountId: id,
        digest: secretKeys.digest(mode, made),
        hint: hintOf(made),
        actor: 'test',
        ...(models !== undefined && { models }),
        ...(expiresAt !== undefined && { expiresAt }),
      })
      return { id, key: made, keyId }
    },
    async balance(id = accountId) {
      await gateway.settleBooks()
      return store.db.selectFrom('account').select(['posted', 'held']).where('id', '=', id).executeTakeFirstOrThrow()
    },
    async assertBooks() {
      await until(() => gateway.openHolds() === 0)
      await gateway.settleBooks()
      expect(await checkLedger(store)).toEqual([])
      const open = await store.db.selectFrom('hold').select('id').where('state', '=', 'open').execute()
      expect(open).toEqual([])
      if (gateway.sandboxUrl === undefined) return
      const attempts = await store.db
        .selectFrom('attempt')
        .innerJoin('request', 'request.id', 'attempt.request_id')
        .select(['attempt.id', 'attempt.status', 'attempt.vendor_cost', 'request.basis', 'request.cost'])
        .execute()
      const billed = new Map((await bill()).map((line) => [line.ref, line.cost]))
      for (const attempt of attempts) {
        if (attempt.basis === 'vendor' && attempt.status === 200) {
          expect({ id: attempt.id, cost: formatDollars(attempt.vendor_cost) }).toEqual({
            id: attempt.id,
            cost: billed.get(attempt.id) ?? 'not on the bill',
          })
        }
        if (attempt.basis === 'estimated') expect(attempt.cost).toBeGreaterThan(0n)
      }
    },
    async close(closing) {
      await gateway.close(closing)
      if (databaseUrl !== undefined && options.databaseUrl === undefined) {
        await (await sharedPostgres()).dropDatabase(databaseUrl)
      }
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * One gateway for the tests of a file or of a `describe`. It starts before the first of them and stops after the last,
 * and its books are checked after each.
 */
export function gatewayForTests(options: Parameters<typeof startTestGateway>[0] = {}): TestGateway {
  // Filled before the first test runs.
  const gateway = {} as TestGateway
  beforeAll(async () => {
    Object.assign(gateway, await startTestGateway(options))
  }, coldStartMs)
  afterEach(() => gateway.assertBooks())
  afterAll(() => gateway.close())
  return gateway
}

/** For events that take moments, on a machine that is busy with other work. */
const untilMsMax = 90_000

/** Waits for a condition, never for a time. */
export async function until(condition: () => boolean | Promise<boolean>, msMax = untilMsMax): Promise<void> {
  const giveUpAt = performance.now() + msMax
  // Checks less and less often, because constant checking takes processor time from the awaited work.
  for (let waitMs = 2; !(await condition()); waitMs = Math.min(waitMs * 1.2, 25)) {
    if (performance.now() > giveUpAt) throw new Error('the awaited condition never came')
    await new Promise((resolve) => setTimeout(resolve, waitMs))
  }
}
