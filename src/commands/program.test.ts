import { expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { program } from './program.ts'

test.each([
  ['requests', 'show'],
  ['tasks', 'show'],
  ['tasks', 'watch'],
  ['keys', 'revoke'],
  ['webhooks', 'resend'],
])('%s %s, which finds a record by its id, takes no option that would have no effect', (group, name) => {
  const command = program.commands.find((one) => one.name() === group)?.commands.find((one) => one.name() === name)
  expect(command?.options.map(({ long }) => long)).toEqual(['--json'])
})

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

const turnpike = join(import.meta.dir, '../../bin/turnpike')
const withoutSettings = { cwd: import.meta.dir, env: { PATH: process.env['PATH'] ?? '' }, stderr: 'pipe' } as const

test.each([
  [['keys', 'list', '--acount', 'acme'], "unknown option '--acount' (Did you mean --account?)"],
  [['serv'], "unknown command 'serv' (Did you mean serve?)"],
  [
    ['accounts', 'change', 'acme', '--enabled', 'no'],
    "option '--enabled <value>' argument 'no' is invalid. Allowed choices are true, false.",
  ],
  [
    ['accounts', 'create'],
    "required option '--name <name>' not specified; turnpike accounts create --help says what it takes",
  ],
  [['webhooks', 'show', 'evt_1'], "unknown command 'show'; turnpike webhooks --help says what it takes"],
  [
    ['check', 'turnpike.yaml'],
    "too many arguments for 'check'. Expected 0 arguments but got 1: turnpike.yaml; turnpike check --help says what it takes",
  ],
])('%j is refused in one line with the name of the program', (args, says) => {
  const { exitCode, stdout, stderr } = Bun.spawnSync([turnpike, ...args], { ...withoutSettings, stdout: 'pipe' })
  expect([exitCode, stdout.toString(), stderr.toString()]).toEqual([1, '', `turnpike: ${says}\n`])
})

const command = [turnpike, 'models', '--json']

// Every write to this device fails as on a full disk.
const full = '/dev/full'
test.skipIf(!existsSync(full))('a command whose output cannot be written fails and says why', () => {
  const { exitCode, stderr } = Bun.spawnSync(command, { ...withoutSettings, stdout: Bun.file(full) })
  expect(stderr.toString()).toBe('turnpike: the output cannot be written: ENOSPC: no space left on device, write\n')
  expect(exitCode).toBe(1)
})

test('a reader that closes the pipe early is no failure of the command', async () => {
  const child = Bun.spawn(command, { ...withoutSettings, stdout: 'pipe' })
  await child.stdout.cancel()
  expect(await new Response(child.stderr).text()).toBe('')
  expect(await child.exited).toBe(0)
})

test('a list keeps to the width of a terminal, and has a line for each row anywhere else', async () => {
  const decoder = new TextDecoder()
  const shown = await new Promise<string>((resolve) => {
    let text = ''
    const terminal = {
      cols: 80,
      data: (_: Bun.Terminal, bytes: Uint8Array) => void (text += decoder.decode(bytes, { stream: true })),
      exit: () => resolve(text),
    }
    Bun.spawn([turnpike, 'models'], { cwd: withoutSettings.cwd, env: withoutSettings.env, terminal })
  })
  const printed = Bun.spawnSync([turnpike, 'models'], { ...withoutSettings, stdout: 'pipe' }).stdout.toString()
  const [onTerminal, elsewhere] = [shown.replaceAll('\r', ''), printed].map((text) =>
    text.split('\n\n')[0]?.split('\n'),
  )
  expect(onTerminal?.[0]).toMatch(/^MODEL +VENDOR /)
  expect(onTerminal?.filter((line) => line.length > 80)).toEqual([])
  expect(elsewhere?.[0]).toMatch(/^MODEL .* ENDS$/)
  expect(onTerminal?.filter((line) => !line.startsWith(' '))).toHaveLength(elsewhere?.length ?? 0)
})
