import { beforeEach, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs'
import { statSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { checkSecret, exposedSecretFile, replacedSecretFile, installationSecret } from './installation-secret.ts'
import { keptOnce } from './kept-once.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'

let home: string
let folder: string
let file: string
beforeEach(() => {
  home = temporaryFolder('secret')
  folder = join(home, 'deep', 'data')
  file = join(folder, 'secret')
})

const given = 'g'.repeat(32)

function write(text: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, text)
}

describe('a secret that is not given', () => {
  test('the secret is made once, in a file that only its owner can read', () => {
    const made = installationSecret(undefined, folder)
    expect(made.length).toBeGreaterThanOrEqual(32)
    expect(readFileSync(file, 'utf8')).toBe(Buffer.from(made).toString())
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(readdirSync(folder)).toEqual(['secret'])
    expect(installationSecret(undefined, folder)).toEqual(made)
  })

  test('each folder has a secret of its own', () => {
    expect(installationSecret(undefined, folder)).not.toEqual(installationSecret(undefined, home))
  })

  test('a stored secret that is too short is refused', () => {
    write(`${'x'.repeat(31)}\n`)
    expect(() => installationSecret(undefined, folder)).toThrow('no secret of at least 32 bytes')
    expect(() => checkSecret(undefined, folder)).toThrow('no secret of at least 32 bytes')
    write(`${'x'.repeat(32)}\n`)
    expect(Buffer.from(installationSecret(undefined, folder)).toString()).toBe('x'.repeat(32))
  })

  test('zeros, which a power cut may have left in its place, are no secret', () => {
    write('\0'.repeat(64))
    expect(() => installationSecret(undefined, folder)).toThrow(
      'no secret of at least 32 bytes: restore it from a copy',
    )
    expect(() => checkSecret(undefined, folder)).toThrow('no secret of at least 32 bytes')
  })
})

test('a secret that is there and cannot be read is not made anew, and the reason is named', () => {
  mkdirSync(file, { recursive: true })
  expect(() => installationSecret(undefined, folder)).toThrow('EISDIR')
})

test('the secret that a concurrent first start has written is used', () => {
  const kept = keptOnce(file, () => {
    write('of the other start')
    return 'of this one'
  })
  expect(kept).toBe('of the other start')
  expect(readdirSync(folder)).toEqual(['secret'])
})

test('a given secret is used, and nothing is written', () => {
  expect(Buffer.from(installationSecret(given, folder)).toString()).toBe(given)
  expect(existsSync(folder)).toBe(false)
})

const program = (path: string) => writeFileSync(path, 'a program', { mode: 0o700 })
const danglingLink = (path: string) => symlinkSync(join(home, 'nowhere'), path)

describe('a check of the secret', () => {
  test('the check writes nothing', () => {
    checkSecret(undefined, folder)
    checkSecret(given, folder)
    expect(existsSync(join(home, 'deep'))).toBe(false)
  })

  test('the check ignores a stored secret when another one is given', () => {
    write('short')
    checkSecret(given, folder)
  })

  test.each([
    ['is a file', 'data', program],
    ['is inside a file', '.', program],
    ['is a link that leads nowhere', 'data', danglingLink],
    ['is inside a link that leads nowhere', '.', danglingLink],
  ])('the check refuses a data folder that %s', (_, where, put) => {
    const path = join(home, 'deep', where)
    mkdirSync(dirname(path), { recursive: true })
    put(path)
    for (const secret of [undefined, given]) {
      expect(() => checkSecret(secret, folder)).toThrow(`${folder} cannot be used (TURNPIKE_DATA names the folder)`)
    }
    expect(() => installationSecret(undefined, folder)).toThrow(`${folder} cannot be used`)
  })
})

test('a stored secret that the given one replaces is reported by its file', () => {
  expect(replacedSecretFile(given, folder)).toBeUndefined()
  write(`${given}\n`)
  expect(replacedSecretFile(given, folder)).toBeUndefined()
  write('y'.repeat(64))
  expect(replacedSecretFile(given, folder)).toBe(file)
  expect(replacedSecretFile(undefined, folder)).toBeUndefined()
})

test('a file of the secret in use that others may read is reported, also beside the same secret in the environment', () => {
  expect(exposedSecretFile(given, folder)).toBeUndefined()
  write(`${given}\n`)
  chmodSync(file, 0o644)
  expect(exposedSecretFile(undefined, folder)).toBe(file)
  expect(exposedSecretFile(given, folder)).toBe(file)
  expect(exposedSecretFile('y'.repeat(64), folder)).toBeUndefined()
  chmodSync(file, 0o640)
  expect(exposedSecretFile(given, folder)).toBeUndefined()
})
