import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { makeCli } from '../support/cli.ts'
import { copyProgram, installedPackages } from '../support/copied-program.ts'
import { speechPath } from '../support/speech.ts'

// What `npm ci` makes of the sources, and when `bin/turnpike` uses it: docs/decisions/0018.

// Machines that test are busy.
setDefaultTimeout(120_000)

const installed = copyProgram('installed')
const cli = makeCli({ installed })
beforeAll(() => bundle())
afterAll(() => cli.close())

function bundle(): void {
  const { exitCode, stderr } = Bun.spawnSync([process.execPath, join(installed, 'scripts/bundle.ts')])
  expect({ exitCode, stderr: String(stderr) }).toEqual({ exitCode: 0, stderr: '' })
}

const bundles = join(installed, 'dist')
/** All there are, the newest first. */
function made(): string[] {
  const madeAt = (name: string) => statSync(join(bundles, name)).mtimeMs
  return existsSync(bundles) ? readdirSync(bundles).toSorted((a, b) => madeAt(b) - madeAt(a)) : []
}

/** Whether `bin/turnpike` runs a bundle, which then says so. */
function runsBundle(): boolean {
  for (const name of made()) {
    const file = join(bundles, name, 'main.js')
    writeFileSync(file, `process.stderr.write('bundled ')\n${readFileSync(file, 'utf8')}`)
  }
  const { exitCode, stderr } = Bun.spawnSync([join(installed, 'bin/turnpike'), '--version'])
  expect(exitCode).toBe(0)
  return String(stderr).startsWith('bundled ')
}

const programs = [...new Bun.Glob('src/**/{main,gateway,*-worker}.ts').scanSync(installed)]
const texts = new Map(programs.map((path) => [path, readFileSync(join(installed, path), 'utf8')]))

/** Has sources that throw count as those of the bundle: then nothing may run from a source. */
function spoilSources(): void {
  const honest = fingerprintNow()
  for (const path of programs) writeFileSync(join(installed, path), `throw new Error('a source was run')`)
  renameSync(join(bundles, honest), join(bundles, fingerprintNow()))
}

function mendSources(): void {
  const spoilt = fingerprintNow()
  for (const [path, text] of texts) writeFileSync(join(installed, path), text)
  renameSync(join(bundles, spoilt), join(bundles, fingerprintNow()))
}

function fingerprintNow(): string {
  const ask = `import { fingerprint } from '${installed}/src/base/program-files.ts'; process.stdout.write(fingerprint())`
  return String(Bun.spawnSync([process.execPath, '-e', ask]).stdout)
}

test('a gateway runs from the bundle: its threads, its pages and what it loads only when it is used', async () => {
  expect(runsBundle()).toBe(true)
  spoilSources()
  const gateway = await cli.serve()
  const headers = { authorization: `Bearer ${gateway.key}`, 'content-type': 'application/json' }

  const answer = await gateway.chat()
  expect(answer.status).toBe(200)
  expect(Number(answer.headers.get('x-turnpike-cost'))).toBeGreaterThan(0)

  const body = JSON.stringify({ model: 'qwen3-tts-flash', input: 'Hello!', response_format: 'mp3' })
  const speech = await fetch(gateway.url + speechPath, { method: 'POST', headers, body })
  expect(speech.headers.get('content-type')).toBe('audio/mpeg')
  const [first, second = 0] = await speech.bytes()
  expect({ first, second: second & 0xe0 }).toEqual({ first: 0xff, second: 0xe0 }) // a frame of mp3

  const page = await fetch(`${gateway.url}/docs`)
  expect(await page.text()).toContain('/v1/chat/completions')
  const tools = await fetch(`${gateway.url}/mcp`, {
    method: 'POST',
    headers: { ...headers, accept: 'application/json, text/event-stream' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  })
  expect(await tools.text()).toContain('generate_image')

  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
  // What the bank's thread posted, read by another command of the same bundle.
  const { data } = await cli.json<{ data: { balance: string; held: string }[] }>(['accounts', 'list'])
  const [account] = data
  expect(account).toMatchObject({ held: '0' })
  expect(Number(account?.balance)).toBeLessThan(100)
  mendSources()
})

test('what is loaded only when it is used is no part of what every start loads', () => {
  const main = readFileSync(join(bundles, made()[0] ?? '', 'main.js'), 'utf8')
  expect(main.length).toBeLessThan(100_000)
})

test('everybody may read the bundle, whoever has installed it', () => {
  const [newest = ''] = made()
  expect((statSync(join(bundles, newest)).mode & 0o777).toString(8)).toBe((0o777 & ~process.umask()).toString(8))
})

test.each(['src/base/money.ts', 'package.json', `node_modules/${installedPackages}`])(
  'where %s is another, the sources run',
  (path) => {
    rmSync(bundles, { recursive: true })
    bundle()
    const file = join(installed, path)
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, `${text}\n`)
    expect(runsBundle()).toBe(false)
    bundle()
    expect(runsBundle()).toBe(true)
    writeFileSync(file, `${text}\n\n`)
    utimesSync(file, new Date(0), new Date(0)) // from an archive that is older than the bundle
    expect(runsBundle()).toBe(false)
    writeFileSync(file, text)
    expect(runsBundle()).toBe(true) // the bundle before is still there
  },
)

test('a source that was added, renamed or removed counts; a test and what an editor leaves do not', () => {
  const [added, renamed] = [join(installed, 'src/added.ts'), join(installed, 'src/renamed.ts')]
  writeFileSync(added, '')
  expect(runsBundle()).toBe(false)
  bundle()
  renameSync(added, renamed)
  expect(runsBundle()).toBe(false)
  bundle()
  rmSync(renamed)
  expect(runsBundle()).toBe(false)
  bundle()
  rmSync(join(installed, 'src/base/money.test.ts'))
  symlinkSync('nobody@nowhere', join(installed, 'src/base/.#money.ts'))
  expect(runsBundle()).toBe(true)
})

test('a damaged bundle is made anew under the same name', () => {
  bundle()
  const [name = ''] = made()
  writeFileSync(join(bundles, name, 'main.js'), '')
  bundle()
  expect(made()[0]).toBe(name)
  expect(runsBundle()).toBe(true)
  expect(made().filter((other) => other.startsWith('new-'))).toEqual([])
  expect(String(Bun.spawnSync([join(installed, 'bin/turnpike'), '--version']).stdout).trim()).not.toBe('')
})

test('the last bundle before stays, for a gateway that still runs from it, and nothing else', () => {
  mkdirSync(join(bundles, 'new-broken-off'))
  utimesSync(join(bundles, 'new-broken-off'), new Date(0), new Date(0))
  const before = made()[0]
  writeFileSync(join(installed, 'src/added.ts'), '1')
  bundle()
  expect(made()).toEqual([expect.stringMatching(/^[0-9a-f]{8}$/), before ?? 'none'])
})

test('without a bundle the sources run', () => {
  rmSync(bundles, { recursive: true })
  expect(runsBundle()).toBe(false)
})
