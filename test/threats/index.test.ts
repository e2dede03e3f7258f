import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dir, '../..')
const page = readFileSync(join(import.meta.dir, 'README.md'), 'utf8')
const rows = [...page.matchAll(/^\| ([A-Z]-\d\d) \| [^|]+ \| (\S+) \| (.+) \|$/gm)]

test('every test named in the list of threats exists', () => {
  expect(rows.length).toBeGreaterThan(100)
  const lost = rows.filter(([, , file = '', name = '']) => !readFileSync(join(root, file), 'utf8').includes(name))
  expect(lost.map(([line]) => line)).toEqual([])
})
