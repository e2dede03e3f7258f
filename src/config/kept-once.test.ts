import { beforeEach, expect, test } from 'bun:test'
import { fstatSync, linkSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import { failWith } from '../../test/support/thrown.ts'
import { keptOnce } from './kept-once.ts'
import { nodeIdentity } from './node-identity.ts'

let folder: string
let file: string
beforeEach(() => {
  folder = temporaryFolder('kept')
  file = join(folder, 'name')
})

test('a power cut takes away neither the text nor its name: both are synced before the text is used', () => {
  const steps: string[] = []
  const sync = (fd: number) => {
    const { ino, size } = fstatSync(fd)
    steps.push(ino === statSync(folder).ino ? 'the folder is synced' : `${size} bytes are synced`)
  }
  const link = (from: string, to: string) => {
    steps.push('the file is named')
    linkSync(from, to)
  }
  expect(keptOnce(file, () => 'seven b', { link, sync })).toBe('seven b')
  expect(steps).toEqual(['7 bytes are synced', 'the file is named', 'the folder is synced'])
})

test.each(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'])(
  'a file system that has no links (%s) keeps a text too, and the first one for good',
  (code) => {
    const synced: number[] = []
    const keeping = { link: failWith(code), sync: (fd: number) => void synced.push(fstatSync(fd).ino) }
    expect(keptOnce(file, () => 'first', keeping)).toBe('first')
    expect(synced).toContain(statSync(file).ino)
    expect(readFileSync(file, 'utf8')).toBe('first')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(folder)).toEqual(['name'])
    expect(keptOnce(file, () => 'second', keeping)).toBe('first')

    const other = join(folder, 'other')
    const made = () => {
      writeFileSync(other, 'of another start')
      return 'of this one'
    }
    expect(keptOnce(other, made, keeping)).toBe('of another start')
  },
)

test('any other failure to name the file is reported with its folder', () => {
  expect(() => keptOnce(file, () => 'text', { link: failWith('ENOSPC'), sync: () => {} })).toThrow(
    `${folder} cannot be used (TURNPIKE_DATA names the folder): Error: it failed with ENOSPC`,
  )
  expect(readdirSync(folder)).toEqual([])
})

test.each(['', '\n', '\0'.repeat(37)])('a node does not take %j for its name', (text) => {
  const name = nodeIdentity(folder)
  expect(name).toMatch(/^node_[0-9a-f]{32}$/)
  expect(nodeIdentity(folder)).toBe(name)
  writeFileSync(join(folder, 'node'), text)
  expect(() => nodeIdentity(folder)).toThrow(`${join(folder, 'node')} holds no name: restore it from a copy`)
})
