import { expect, test } from 'bun:test'
import { join } from 'node:path'

test('commands that only print load neither the log writer nor the PostgreSQL driver', () => {
  const commands = ['accounts', 'check', 'keys', 'ledger', 'models', 'reconcile', 'tasks', 'usage']
  const files = commands.map((name) => join(import.meta.dir, `${name}.ts`))
  const program = `
    for (const file of ${JSON.stringify(files)}) await import(file)
    const packages = Object.keys(require.cache).map((path) => /node_modules\\/([^/]+)\\//.exec(path)?.[1])
    console.log(JSON.stringify(['kysely', 'pg', 'pino'].filter((name) => packages.includes(name))))
  `
  const { stdout } = Bun.spawnSync([process.execPath, '-e', program], { stderr: 'inherit' })
  expect(JSON.parse(stdout.toString())).toEqual(['kysely'])
})
