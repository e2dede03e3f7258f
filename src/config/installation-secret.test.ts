import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { checkSecret, replacedSecretFile, installationSecret } from './installation-secret.ts'
import { keptOnce } from './kept-once.ts'

let home: string
let folder: string
let file: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'turnpike-secret-'))
  folder = join(home, 'deep', 'data')
  file = join(folder, 'secret')
})
afterEach(() => rmSync(home, { recursive: true, force: true }))

const given = 'g'.repeat(32)

function write(text: string): void {
  mkdirSync(folder, { recursive: true })
  writeFileSync(file, text)
}

describe('a secret that nobody gives', () => {
  test('is made once, and only its owner can read it', () => {
    const made = installationSecret(undefined, folder)
    expect(made.length).toBeGreaterThanOrEqual(32)
    expect(readFileSync(file, 'utf8')).toBe(Buffer.from(made).toString())
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    expect(readdirSync(folder)).toEqual(['secret'])
    expect(installationSecret(undefined, folder)).toEqual(made)
  })

  test('is another in each folder', () => {
    expect(installationSecret(undefined, folder)).not.toEqual(installationSecret(undefined, home))
  })

  test('must be one: what is too short is not made longer', () => {
    write(`${'x'.repeat(31)}\n`)
    expect(() => installationSecret(undefined, folder)).toThrow('no secret of at least 32 bytes')
    expect(() => checkSecret(undefined, folder)).toThrow('no secret of at least 32 bytes')
    write(`${'x'.repeat(32)}\n`)
    expect(Buffer.from(installationSecret(undefined, folder)).toString()).toBe('x'.repeat(32))
  })
})

test('of two first starts one decides', () => {
  const kept = keptOnce(file, () => {
    write('of the other start')
    return 'of this one'
  })
  expect(kept).toBe('of the other start')
  expect(readdirSync(folder)).toEqual(['secret'])
})

test('one that is given is used, and nothing is written', () => {
  expect(Buffer.from(installationSecret(given, folder)).toString()).toBe(given)
  expect(existsSync(folder)).toBe(false)
})

describe('a check', () => {
  test('makes nothing, where something could be made', () => {
    checkSecret(undefined, folder)
    checkSecret(given, folder)
    expect(existsSync(join(home, 'deep'))).toBe(false)
  })

  test('asks for no more than is needed: a kept secret that is not used may be anything', () => {
    write('short')
    checkSecret(given, folder)
  })

  test('finds a folder that cannot be one', () => {
    writeFileSync(join(home, 'deep'), 'a file')
    for (const secret of [undefined, given]) {
      expect(() => checkSecret(secret, folder)).toThrow(`${folder} cannot be used (TURNPIKE_DATA names the folder)`)
    }
    expect(() => installationSecret(undefined, folder)).toThrow(`${folder} cannot be used`)
  })
})

test('a kept secret that the given one has taken the place of is told by its file', () => {
  expect(replacedSecretFile(given, folder)).toBeUndefined()
  write(`${given}\n`)
  expect(replacedSecretFile(given, folder)).toBeUndefined()
  write('y'.repeat(64))
  expect(replacedSecretFile(given, folder)).toBe(file)
  expect(replacedSecretFile(undefined, folder)).toBeUndefined()
})
