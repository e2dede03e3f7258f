import { expect, test } from 'bun:test'
import { accountToPaste, counted, quoted, sheet, table, withoutSecretsOf } from './output.ts'

test('tables and sheets are aligned, with control characters replaced', () => {
  const rows = [
    { name: 'a', amount: '10' },
    { name: 'long\u001B[2Jer', amount: '5' },
    { name: 'turned\u202E', amount: '1' },
    { name: 'a\u2028b', amount: '2' },
  ]
  const columns = [
    { name: 'NAME', show: (row: { name: string }) => row.name },
    { name: 'N', align: 'right' as const, show: (row: { amount: string }) => row.amount },
  ]
  expect(table(columns, rows)).toBe(
    ['NAME         N', 'a           10', 'long?[2Jer   5', 'turned?      1', 'a?b          2'].join('\n'),
  )
  expect(sheet({ id: 'x', models: 'all\n' })).toBe('id      x\nmodels  all?')
})

test('columns are aligned as a terminal shows them', () => {
  const columns = [
    { name: 'NAME', show: (name: string) => name },
    { name: 'RIGHT', align: 'right' as const, show: (name: string) => name },
    { name: 'N', show: () => '1' },
  ]
  expect(table(columns, ['株式会社', 'e\u0301te\u0301', '🔑'])).toBe(
    [
      'NAME         RIGHT  N',
      '株式会社  株式会社  1',
      'e\u0301te\u0301            e\u0301te\u0301  1',
      '🔑              🔑  1',
    ].join('\n'),
  )
})

test('a row that a terminal has no room for goes on below, and never in the middle of a column', () => {
  const columns = ['ONE', 'TWO', 'THREE', 'FOUR'].map((name) => ({ name, show: (text: string) => text }))
  const right = columns.map((column) => ({ ...column, align: 'right' as const }))
  expect(table(columns, ['1', '22222'], 12)).toBe(
    [
      'ONE    TWO',
      '    THREE',
      '    FOUR',
      '1      1',
      '    1',
      '    1',
      '22222  22222',
      '    22222',
      '    22222',
    ].join('\n'),
  )
  expect(table(right, ['1'], 17)).toBe(['ONE  TWO  THREE', '    FOUR', '  1    1      1', '       1'].join('\n'))
  expect(table(columns, ['1'], 21)).toBe(['ONE  TWO  THREE  FOUR', '1    1    1      1'].join('\n'))
})

test.each([
  ['unknown vendor "gsk_abcdef12"', 'unknown vendor "[redacted]"'],
  ['postgres://me:p4ssword@host/db', 'postgres://me:[redacted]@host/db'],
  ['key sk-abcdefghijkl', 'key [redacted]'],
  ['the word short stays', 'the word short stays'],
])('secrets and nothing else are redacted: %s', (text, clean) => {
  expect(withoutSecretsOf(text, { GROQ_API_KEY: 'gsk_abcdef12', OTHER_TOKEN: 'short', LANG: 'unknown vendor' })).toBe(
    clean,
  )
})

test.each([
  ['acme', 'acme'],
  ['ac me', `'ac me'`],
  [`it's`, `'it'\\''s'`],
  ['$(rm)', `'$(rm)'`],
])('%s is made safe for a shell', (word, safe) => {
  expect(quoted(word)).toBe(safe)
})

test.each([
  ['acme', 'acme'],
  ['顶点 科技', `'顶点 科技'`],
  ['evil\u202Eemit', 'acc_1'],
  ['two\u0085lines', 'acc_1'],
  ['two\u2028lines', 'acc_1'],
])('an account named %j is pasted as %s', (name, word) => {
  expect(accountToPaste({ id: 'acc_1', name })).toBe(word)
})

test('only a single thing is counted in the singular', () => {
  expect([0, 1, 2].map((count) => counted(count, 'breach', 'breaches'))).toEqual([
    '0 breaches',
    '1 breach',
    '2 breaches',
  ])
  expect(counted(2, 'call')).toBe('2 calls')
})
