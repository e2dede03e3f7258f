import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeCli } from '../support/cli.ts'
import { copyProgram } from '../support/copied-program.ts'
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

/** Whether `bin/turnpike` runs the bundle, which then says so. */
function runsBundle(): boolean {
  const file = join(installed, 'dist/main.js')
  if (existsSync(file)) writeFileSync(file, `process.stderr.write('bundled ')\n${readFileSync(file, 'utf8')}`)
  const { exitCode, stderr } = Bun.spawnSync([join(installed, 'bin/turnpike'), '--version'])
  expect(exitCode).toBe(0)
  return String(stderr).startsWith('bundled ')
}

test('a gateway runs from the bundle: its threads, its pages and what it loads only when it is used', async () => {
  expect(runsBundle()).toBe(true)
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
})

test.each(['src/base/money.ts', 'package.json'])('where %s is another, the sources run', (path) => {
  const file = join(installed, path)
  const text = readFileSync(file, 'utf8')
  writeFileSync(file, `${text}\n`)
  expect(runsBundle()).toBe(false)
  bundle()
  expect(runsBundle()).toBe(true)
  writeFileSync(file, text)
  utimesSync(file, new Date(0), new Date(0)) // from an archive that is older than the bundle
  expect(runsBundle()).toBe(false)
  bundle()
})

test('a source that was added, renamed or removed counts, and a test does not', () => {
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
  expect(runsBundle()).toBe(true)
})

test('a bundle takes the place of the one before, and leaves nothing else behind', () => {
  expect(readdirSync(installed).filter((name) => name.startsWith('dist'))).toEqual(['dist'])
})

test('without a bundle the sources run', () => {
  rmSync(join(installed, 'dist'), { recursive: true })
  expect(runsBundle()).toBe(false)
})
