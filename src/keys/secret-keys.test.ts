import { expect, test } from 'bun:test'
import { hintOf, makeSecretKeys } from './secret-keys.ts'

const keys = makeSecretKeys(Buffer.from('a'.repeat(32)))
const others = makeSecretKeys(Buffer.from('b'.repeat(32)))

test('a key is a prefix, 32 random bytes and a checksum, and never the same twice', () => {
  const made = Array.from({ length: 1_000 }, () => keys.make('sk'))
  expect(new Set(made).size).toBe(1_000)
  for (const key of made) expect(key).toMatch(/^sk-[A-Za-z0-9_-]{49}$/)
  expect(keys.make('adm')).toMatch(/^adm-[A-Za-z0-9_-]{49}$/)
})

test('the checksum tells our keys from invented ones and from those of another installation', () => {
  const key = keys.make('sk')
  expect(keys.hasChecksum(key)).toBe(true)
  expect(others.hasChecksum(key)).toBe(false)
  for (const invented of ['', 'sk-', `${key}x`, key.slice(0, -1), `sk-${'x'.repeat(49)}`, key.replace('sk-', 'adm-')]) {
    expect(keys.hasChecksum(invented)).toBe(false)
  }
})

test('a change of any character breaks the checksum', () => {
  const key = keys.make('sk')
  for (let at = 0; at < key.length; at++) {
    const changed = key.slice(0, at) + (key[at] === 'A' ? 'B' : 'A') + key.slice(at + 1)
    expect(keys.hasChecksum(changed)).toBe(false)
  }
})

test('a digest is 64 hex digits, and differs by key, realm and installation', () => {
  const key = keys.make('sk')
  const digests = [
    keys.digest('sandbox', key),
    keys.digest('real', key),
    keys.digest('admin', key),
    others.digest('real', key),
    keys.digest('real', `${key}x`),
  ]
  expect(new Set(digests).size).toBe(5)
  for (const digest of digests) expect(digest).toMatch(/^[0-9a-f]{64}$/)
  expect(keys.digest('real', key)).toBe(keys.digest('real', key))
})

test('a hint is the last four characters', () => {
  expect(hintOf('sk-abcdefgh')).toBe('efgh')
})
