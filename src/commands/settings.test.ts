import { beforeEach, describe, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { loadSettings } from './settings.ts'

let file: string
beforeEach(() => {
  file = join(temporaryFolder('settings'), 'turnpike.yaml')
})

const yaml = 'publicUrl: "https://gateway.example.com"\ntimeouts:\n  drainSeconds: 7\n'

function load(bytes: Uint8Array | string) {
  writeFileSync(file, bytes)
  return loadSettings(file).file.settings
}

test.each([
  ['lines that end as on Windows', yaml.replaceAll('\n', '\r\n')],
  ['a mark at the beginning, as editors on Windows write it', `\uFEFF${yaml}`],
])('a file with %s is read like any other', (_name, text) => {
  expect(load(text)).toMatchObject({ publicUrl: 'https://gateway.example.com', timeouts: { drainSeconds: 7 } })
})

test('a mark alone is an empty file', () => {
  expect(load('\uFEFF').timeouts.drainSeconds).toBe(load('').timeouts.drainSeconds)
})

test.each(['', '\uFEFF', ' \n'])('a file that was emptied (%j) is not taken into use by a reload', (text) => {
  load(text)
  expect(() => loadSettings(file, 'reload')).toThrow(`${file} is empty`)
  load(`${text}# nothing but a remark\n`)
  expect(loadSettings(file, 'reload').path).toBe(file)
})

describe('a file that is not UTF-8', () => {
  test.each([
    ['UTF-16 with its mark', Buffer.from(`\uFEFF${yaml}`, 'utf16le')],
    ['UTF-16 without one', Buffer.from(yaml, 'utf16le')],
    ['UTF-16 in the other order', Buffer.from(`\uFEFF${yaml}`, 'utf16le').swap16()],
    ['Latin-1', Buffer.from('publicUrl: "https://café.example.com"\n', 'latin1')],
  ])('%s is refused with what to do', (_name, bytes) => {
    expect(() => load(bytes)).toThrow(`${file} is not UTF-8 text: save it as UTF-8`)
  })
})
