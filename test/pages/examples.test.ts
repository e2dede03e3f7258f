import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { furnish, hasShell, runExample } from '../support/reader.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/**
 * Every example of the reference page, run as it is printed there, with nothing but what the page tells to set. A
 * reader pastes them: one that cannot work is worse than none.
 */
type Printed = { readonly operation: string; readonly language: string; readonly source: string }

const page = await Bun.file(new URL('../../src/http/openapi/reference.html', import.meta.url)).text()
const printed = readExamples(page)
const root = join(import.meta.dir, '../..')
/** Starting an interpreter takes seconds on a busy machine. */
const runMs = 120_000

const python = Bun.which('python3')
const hasPythonClients =
  python !== null && Bun.spawnSync([python, '-c', 'import openai, anthropic'], { stderr: 'ignore' }).success

let gateway: TestGateway
let folder: string
const ordered: string[] = []

beforeAll(async () => {
  gateway = await startTestGateway()
  folder = temporaryFolder('examples')
})
afterAll(async () => {
  // Cancels those that no example has cancelled; a second time is merely refused.
  const headers = { authorization: `Bearer ${gateway.key}` }
  for (const id of ordered) await fetch(`${gateway.url}/v1/videos/generations/${id}`, { method: 'DELETE', headers })
  await gateway.assertBooks()
  await gateway.close()
})

/** A folder as a reader has it: with the clients installed, and the image that is edited. */
function makePlace(name: string): string {
  const place = join(folder, name)
  mkdirSync(place)
  symlinkSync(join(root, 'node_modules'), join(place, 'node_modules'))
  furnish(place)
  return place
}

/** A video that can still be cancelled. */
async function orderVideo(): Promise<string> {
  const input = { prompt: 'A fox. sandbox:queued=600000' }
  const response = await gateway.post('/v1/videos/generations', { model: 'wan2.6-t2v', input })
  const { id } = (await response.json()) as { id: string }
  ordered.push(id)
  return id
}

async function taskFor(operation: string): Promise<string | undefined> {
  return operation === 'retrieveVideo' || operation === 'cancelVideo' ? orderVideo() : undefined
}

function run(command: readonly string[], place: string, task?: string): Promise<string> {
  // Python's clients warn of interpreters that are newer than they are, which is not the example's fault.
  const variables = { PYTHONWARNINGS: 'ignore', ...(task !== undefined && { TASK: task }) }
  return runExample(command, { gateway, folder: place, variables })
}

/** Expects output without an error, or a file. */
function hasWorked(said: string, place: string): void {
  expect(said).not.toMatch(/["']?error["']?:(?! ?null)/)
  const made = readdirSync(place).filter((name) => /\.(?:png|mp3)$/.test(name))
  expect(said.trim() !== '' || made.length > 0).toBe(true)
}

function of(language: string): readonly Printed[] {
  return printed.filter((example) => example.language === language)
}

test('every operation has an example in each language', () => {
  const operations = new Set(printed.map(({ operation }) => operation))
  expect(operations.size).toBeGreaterThan(10)
  expect(printed.length).toBe(3 * operations.size)
})

describe.skipIf(!hasShell)('examples with curl', () => {
  test.each(of('curl'))(
    'the example of $operation works as printed',
    async ({ operation, source }) => {
      const place = makePlace(`curl-${operation}`)
      hasWorked(await run(['bash', '-c', source], place, await taskFor(operation)), place)
    },
    runMs,
  )
})

describe('examples in TypeScript', () => {
  test.each(of('TypeScript'))(
    'the example of $operation works as printed',
    async ({ operation, source }) => {
      const place = makePlace(`typescript-${operation}`)
      writeFileSync(join(place, 'example.ts'), source)
      hasWorked(await run([process.execPath, 'example.ts'], place, await taskFor(operation)), place)
    },
    runMs,
  )
})

test(
  'the example of getUsage shows what the examples have used',
  async () => {
    await (await gateway.post('/v1/embeddings', { model: 'text-embedding-v4', input: 'The sea is calm.' })).text()
    const place = makePlace('usage-of-examples')
    const example = of('TypeScript').find(({ operation }) => operation === 'getUsage')
    writeFileSync(join(place, 'example.ts'), example?.source ?? '')
    expect(await run([process.execPath, 'example.ts'], place)).toContain('requests:')
  },
  runMs,
)

/** Where the official clients are not installed, examples that need them are parsed and not run. */
describe.skipIf(python === null)('examples in Python', () => {
  test.each(of('Python'))(
    'the example of $operation works as printed, or parses where its client is not installed',
    async ({ operation, source }) => {
      const place = makePlace(`python-${operation}`)
      writeFileSync(join(place, 'example.py'), source)
      const isRun = hasPythonClients || !/^from (?:openai|anthropic) /m.test(source)
      if (!isRun) await run([python ?? '', '-c', 'import ast; ast.parse(open("example.py").read())'], place)
      else hasWorked(await run([python ?? '', 'example.py'], place, await taskFor(operation)), place)
    },
    runMs,
  )
})

function readExamples(page: string): Printed[] {
  const found: Printed[] = []
  for (const [, operation = '', section = ''] of page.matchAll(/<section id="(\w+)">(.*?)<\/section>/gs)) {
    const examples = section.matchAll(
      /<details[^>]*><summary>([^<]*)<\/summary><pre[^>]*><code>([^<]*)<\/code><\/pre><\/details>/g,
    )
    for (const [, language = '', source = ''] of examples) {
      found.push({ operation, language, source: unescape(source) })
    }
  }
  return found
}

function unescape(text: string): string {
  return text.replaceAll('&quot;', '"').replaceAll('&gt;', '>').replaceAll('&lt;', '<').replaceAll('&amp;', '&')
}
