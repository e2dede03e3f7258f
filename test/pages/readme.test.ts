import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const root = join(import.meta.dir, '../..')
const readme = readFileSync(join(root, 'README.md'), 'utf8')

/** The model that Claude Code asks for unless it is given another. */
const itsDefault = 'claude-opus-5-5'
/** A model of the catalogue that has no price. */
const unpriced = 'meta-llama-3.3-70b-instruct'

const ask = (gateway: TestGateway, model: string | undefined) =>
  fetch(`${gateway.url}/v1/models/${model}`, { headers: { authorization: `Bearer ${gateway.key}` } })

test('README has at most 64 lines of at most 100 characters', () => {
  const lines = readme.trimEnd().split('\n')
  expect(lines.length).toBeLessThanOrEqual(64)
  expect(lines.filter((line) => line.length > 100)).toEqual([])
})

test('every local link of a page leads to a file and heading that exist', () => {
  const places = ['*.md', 'docs/**/*.md', 'test/**/*.md']
  const pages = places.flatMap((place) => [...new Bun.Glob(place).scanSync(root)])
  expect(pages).toContain('docs/clients.md')
  const broken: string[] = []
  for (const page of pages) {
    for (const [, path = '', heading = ''] of readFileSync(join(root, page), 'utf8').matchAll(localLink)) {
      const target = path === '' ? join(root, page) : join(root, dirname(page), path)
      if (!existsSync(target) || (heading !== '' && !headingsOf(target).includes(heading))) {
        broken.push(`${page}: ${path}#${heading}`)
      }
    }
  }
  expect(broken).toEqual([])
})

const localLink = /\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)/g

/** As pages of a repository are shown: in lower case, with hyphens for spaces and without punctuation. */
function headingsOf(file: string): string[] {
  const headings = readFileSync(file, 'utf8').matchAll(/^#+ (.+)$/gm)
  return [...headings].map(([, text = '']) =>
    text
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

test('README’s example for the official SDK works as printed', async () => {
  const printed = /```js\n(.*?)```/s.exec(readme)?.[1] ?? ''
  const gateway = await startTestGateway()
  const folder = temporaryFolder('readme')
  try {
    symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
    const file = join(folder, 'example.mjs')
    writeFileSync(file, printed.replace('http://127.0.0.1:8080', gateway.url))
    const child = Bun.spawn(['node', file], {
      env: { PATH: process.env['PATH'] ?? '', TURNPIKE_KEY: gateway.key },
      stderr: 'inherit',
    })
    expect((await new Response(child.stdout).text()).trim()).toMatch(/^(?!undefined$|null$).+/)
    await gateway.assertBooks()
  } finally {
    await gateway.close()
  }
}, 60_000)

describe('README’s line for Claude Code', () => {
  const chosen = /ANTHROPIC_MODEL=(\S+) claude/.exec(readme)?.[1]

  let real: TestGateway
  let sandbox: TestGateway
  beforeAll(async () => {
    real = await startTestGateway({ variables: { ANTHROPIC_API_KEY: 'not-used' } })
    sandbox = await startTestGateway()
  })
  afterAll(() => Promise.all([real.close(), sandbox.close()]))

  test("its model and Claude Code's default are sold in both modes", async () => {
    for (const gateway of [real, sandbox]) {
      expect((await ask(gateway, chosen)).status).toBe(200)
      expect((await ask(gateway, itsDefault)).status).toBe(200)
    }
  })

  test('a model without a price is refused with a hint to the operator', async () => {
    expect((await ask(sandbox, unpriced)).status).toBe(200)
    const body = { model: unpriced, max_tokens: 10, messages: [{ role: 'user', content: 'Hello!' }] }
    const refused = await real.post('/v1/messages', body)
    expect(refused.status).toBe(404)
    expect(await refused.json()).toMatchObject({
      error: { message: `The model \`${unpriced}\` has no price here, and is not sold until the operator sets one.` },
    })
  })
})
