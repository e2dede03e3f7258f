import { describe, expect, spyOn, test } from 'bun:test'
import * as crypto from 'node:crypto'
import { createHash, randomBytes, randomInt } from 'node:crypto'
import { makeOperators } from '../../src/admin/operators.ts'
import { makeLinks } from '../../src/artifacts/links.ts'
import { GatewayError } from '../../src/base/errors.ts'
import { silentLog } from '../../src/base/log.ts'
import { macFor } from '../../src/base/secret.ts'
import { KeyRing } from '../../src/keys/key-ring.ts'
import { makeSecretKeys } from '../../src/keys/secret-keys.ts'
import { makeSessions } from '../../src/mcp/sessions.ts'
import { createAccount } from '../../src/store/accounts.ts'
import { insertKey } from '../../src/store/keys.ts'
import { openStore, type Store } from '../../src/store/open.ts'
import { makeCallbacks } from '../../src/tasks/callbacks.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { movableClock } from '../support/movable-clock.ts'
import { sharedPostgres } from '../support/postgres.ts'
import { lines, sendRaw } from '../support/raw-socket.ts'
import { says } from '../support/streams.ts'
import { tapPostgres } from '../support/tapped-postgres.ts'

const list = (gateway: TestGateway, key: string) =>
  fetch(`${gateway.url}/v1/models`, { headers: { authorization: `Bearer ${key}` } })

/** The forms that a secret could have in bytes that are sent or kept. */
function formsOf(secret: string): string[] {
  const bytes = Buffer.from(secret)
  const hash = createHash('sha256').update(secret).digest()
  return [secret, bytes.toString('base64').slice(0, -4), bytes.toString('hex'), hash.toString('hex')]
}

const aboutKeys = (texts: Set<string>) => [...texts].filter((text) => text.includes('api_key')).toSorted()

describe('A-03: the database never sees a key', () => {
  test('neither a valid key nor one written as SQL appears in a statement or a value', async () => {
    const postgres = await sharedPostgres()
    const databaseUrl = await postgres.freshDatabase()
    const tap = await tapPostgres(databaseUrl)
    const gateway = await startTestGateway({ databaseUrl: tap.url })
    try {
      const { key } = await gateway.account()
      // What the database is told in ordinary use: a good key, an unknown one, a charge, a refusal.
      expect((await list(gateway, key)).status).toBe(200)
      expect((await list(gateway, 'sk-unknown-to-everybody')).status).toBe(401)
      const chat = (held: string) =>
        gateway.post('/v1/chat/completions', says('Hello!'), { authorization: `Bearer ${held}` })
      expect((await chat(key)).status).toBe(200)
      await gateway.assertBooks()
      const usual = tap.statements()

      const hostile = [
        "'/**/OR/**/'1'='1",
        "x';drop/**/table/**/api_key;--",
        '$1',
        "'".repeat(8 * 1024),
        `${key}'--`,
        `${key.slice(0, -1)}\\`,
        "' OR '1'='1",
      ]
      const before = digestsIn(tap.said())
      for (const value of hostile) {
        expect((await list(gateway, value)).status).toBe(401)
        expect((await chat(value)).status).toBe(401)
        const raw = lines('GET /v1/models HTTP/1.1', `Host: ${new URL(gateway.url).host}`, `x-api-key: ${value}`)
        expect((await sendRaw(gateway.url, raw)).status).toBe(401)
      }
      expect((await list(gateway, key)).status).toBe(200)

      const asked = tap.statements()
      // The tap does record: the digests that were asked for are there, one for each value that could be a key at all.
      expect(digestsIn(tap.said()).size - before.size).toBe(hostile.length - 1)
      const said = tap.said().toString('latin1')
      for (const digest of await digestsOf(gateway)) expect(said).toContain(digest)

      for (const value of [key, gateway.key, gateway.adminKey, ...hostile.filter((each) => each !== '$1')]) {
        for (const form of formsOf(value)) expect(said).not.toContain(form)
      }
      // As pg_stat_statements would show it: the same statement for every key.
      expect(aboutKeys(asked)).toEqual(aboutKeys(usual))
      expect(aboutKeys(usual).some((text) => text.includes('"digest" = $1'))).toBe(true)
    } finally {
      await gateway.close()
      await tap.close()
      await postgres.dropDatabase(databaseUrl)
    }
  }, 120_000)
})

async function digestsOf({ store }: TestGateway): Promise<string[]> {
  const rows = await store.db.selectFrom('api_key').select('digest').execute()
  return rows.map(({ digest }) => digest)
}

/** Values that could be digests: 64 hexadecimal digits between other bytes. */
function digestsIn(said: Buffer): Set<string> {
  return new Set(said.toString('latin1').match(/(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])/g))
}

const secretKeys = makeSecretKeys(Buffer.from('a'.repeat(32)))
const address = () => '203.0.113.1'

/** A key ring over a database in memory, which counts what it is asked. */
async function openRing(authFailuresPerMinute: number) {
  const store = await openStore({ file: ':memory:' })
  let lookups = 0
  const counted: Store = {
    ...store,
    get db() {
      lookups++
      return store.db
    },
  }
  const parts = { store: counted, secretKeys, mode: 'sandbox', log: silentLog, authFailuresPerMinute } as const
  const ring = new KeyRing({ ...parts, clock: movableClock() })
  await createAccount(store, { id: 'acc', name: 'acc', mode: 'sandbox', actor: 'test' })
  const made = async () => {
    const key = secretKeys.make('sk')
    const digest = secretKeys.digest('sandbox', key)
    const id = `key_${digest.slice(0, 12)}`
    await insertKey(store, { id, accountId: 'acc', digest, hint: key.slice(-4), actor: 'test' })
    return key
  }
  return {
    lookups: () => lookups,
    made,
    async kindOf(key: string) {
      const thrown: unknown = await ring.authenticate(key, address).catch((error: unknown) => error)
      return thrown instanceof GatewayError ? thrown.kind : 'ok'
    },
    async close() {
      ring.close()
      await store.close()
    },
  }
}

/** The signature at the end of a link of ours. */
const signatureIn = (url: string) => url.slice(-43)

/** How often a draw of the one is larger than a draw of the other, ties half: the statistic of Mann and Whitney. */
function superiority(ones: readonly number[], others: readonly number[]): number {
  const all = [...ones.map((value) => ({ value, of: 1 })), ...others.map((value) => ({ value, of: 0 }))]
  all.sort((a, b) => a.value - b.value)
  let rankSum = 0
  for (let at = 0; at < all.length;) {
    let end = at
    while (end < all.length && all[end]?.value === all[at]?.value) end++
    const rank = (at + 1 + end) / 2
    for (; at < end; at++) if (all[at]?.of === 1) rankSum += rank
  }
  return (rankSum - (ones.length * (ones.length + 1)) / 2) / (ones.length * others.length)
}

const noisy = (shift: number) => Array.from({ length: 5_000 }, () => 10 + shift + randomInt(1_000) / 100)

describe('A-04: the time that a refusal takes', () => {
  const each = 20_000
  const letters = 'abcdefghijklmnopqrstuvwxyz0123456789'

  test('the statistic detects a small shift, and none where there is none', () => {
    expect(superiority(noisy(0), noisy(0))).toBeWithin(0.45, 0.55)
    expect(superiority(noisy(1), noisy(0))).toBeGreaterThan(0.55)
    expect(superiority([1, 2], [1, 2])).toBe(0.5)
  })

  test(`${each} random keys and ${each} near misses of a good one are refused in the same time`, async () => {
    const ring = await openRing(10 * each)
    try {
      const good = await Promise.all(Array.from({ length: 500 }, () => ring.made()))
      for (const key of good) expect(await ring.kindOf(key)).toBe('ok')
      const random = () =>
        `sk-${randomBytes(36)
          .toString('base64url')
          .slice(0, (good[0]?.length ?? 0) - 3)}`
      const nearMiss = () => {
        const key = good[randomInt(good.length)] ?? ''
        const at = 3 + randomInt(key.length - 3)
        const others = letters.replace(key[at] ?? '', '')
        const other = others[randomInt(others.length)] ?? ''
        return key.slice(0, at) + other + key.slice(at + 1)
      }
      const times: Record<'random' | 'nearMiss', number[]> = { random: [], nearMiss: [] }
      const before = ring.lookups()
      // Mixed at random, so that other load on the machine affects both alike.
      for (let turn = 0; turn < 2 * each; turn++) {
        const kind = randomInt(2) === 0 ? 'random' : 'nearMiss'
        const key = kind === 'random' ? random() : nearMiss()
        const startedAt = performance.now()
        const outcome = await ring.kindOf(key)
        times[kind].push(performance.now() - startedAt)
        if (outcome !== 'unauthenticated') throw new Error(`${kind}: ${outcome}`)
      }
      expect(ring.lookups() - before).toBeGreaterThan(1.9 * each)
      // At this number chance moves it by 0.003: what is allowed is seventeen times that, so no machine fails it by
      // chance. A p-value above 0.01 would fail one run in a hundred with nothing wrong at all.
      expect(superiority(times.nearMiss, times.random)).toBeWithin(0.45, 0.55)
    } finally {
      await ring.close()
    }
  }, 120_000)

  // No clock shows this reliably: a comparison that stops at the first wrong byte is quicker by nanoseconds.
  test('signatures, and keys that are not looked up, are compared to their last byte wherever they differ', async () => {
    const mac = macFor(Buffer.from('a'.repeat(32)), 'artifact-link')
    const [links, callbacks, sessions] = [makeLinks(mac, 'x:'), makeCallbacks(mac, 'x:'), makeSessions(mac)]
    const store = await openStore({ file: ':memory:' })
    const parts = { store, secretKeys, clock: movableClock(), authFailuresPerMinute: 100 }
    const metricsKey = 'metrics-key-of-the-operator-0123'
    const operators = makeOperators({ ...parts, metricsKey })
    const id = `vid_${'0'.repeat(32)}`
    /** What is guessed, and how a guess is tried. */
    const guessed: Record<string, readonly [right: string, guess: (text: string) => unknown]> = {
      'the link of a result': [
        signatureIn(links.write('art', 1_000_000)),
        (signature) => links.check({ id: 'art', expires: '1000', signature }, 0),
      ],
      "a vendor's callback": [signatureIn(callbacks.urlOf(id)), (text) => callbacks.taskOf(`${id}.${text}`)],
      'a session of tools': [
        sessions.open('key', '2025-06-18').slice(33),
        (text) => sessions.check(`${'0'.repeat(32)}.${text}`, 'key'),
      ],
      'the checksum of a key': [
        secretKeys.make('sk').slice(-6),
        (text) => secretKeys.hasChecksum(`sk-${'0'.repeat(43)}${text}`),
      ],
      'the key for metrics': [metricsKey, (text) => operators.authenticateScraper(text, address)],
    }
    const compared = spyOn(crypto, 'timingSafeEqual')
    try {
      for (const [name, [right, guess]] of Object.entries(guessed)) {
        for (const text of [`${right[0] === 'A' ? 'B' : 'A'}${right.slice(1)}`, `${right.slice(0, -1)}-`]) {
          compared.mockClear()
          await (async () => guess(text))().catch(() => {})
          expect({ name, text, comparisons: compared.mock.calls.length }).toEqual({ name, text, comparisons: 1 })
        }
      }
    } finally {
      compared.mockRestore()
      await store.close()
    }
  })
})

describe('A-09: guessing keys', () => {
  test('of ten thousand guesses from one address only those within the limit reach the database', async () => {
    const limit = 600
    const ring = await openRing(limit)
    try {
      const key = await ring.made()
      const kinds: Record<string, number> = {}
      for (let guess = 0; guess < 10_000; guess++) {
        const kind = await ring.kindOf(`sk-${randomBytes(32).toString('base64url')}`)
        kinds[kind] = (kinds[kind] ?? 0) + 1
      }
      expect(kinds).toEqual({ unauthenticated: limit, 'too-many': 10_000 - limit })
      expect(ring.lookups()).toBe(limit)
      expect(await ring.kindOf(key)).toBe('ok')
    } finally {
      await ring.close()
    }
  })
})
