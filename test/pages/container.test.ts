import { afterAll, expect, setDefaultTimeout, test } from 'bun:test'
import { appendFileSync, cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { makeCli } from '../support/cli.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

// Machines that test are busy.
setDefaultTimeout(120_000)

const checkout = join(import.meta.dir, '../..')
const image = temporaryFolder('image')
const cli = makeCli({ installed: image })
afterAll(() => cli.close())

function linesOf(name: string): string[] {
  return readFileSync(join(checkout, name), 'utf8').split('\n')
}

/** What the Dockerfile takes out of the checkout, for either of its stages. */
const copied = linesOf('Dockerfile').flatMap((line) => /^COPY ([^-].*) \S+$/.exec(line)?.[1]?.split(' ') ?? [])

/** The packages of `npm ci --omit=dev`, as they lie in `node_modules`; those of other machines are not there. */
function packagesThatRun(): string[] {
  const lock = JSON.parse(readFileSync(join(checkout, 'package-lock.json'), 'utf8')) as {
    packages: Readonly<Record<string, { readonly dev?: true; readonly devOptional?: true }>>
  }
  const kept = Object.entries(lock.packages).filter(([, { dev, devOptional }]) => !dev && !devOptional)
  return kept.map(([path]) => path).filter((path) => /^node_modules\/(@[^/]+\/)?[^/]+$/.test(path))
}

test('the build context holds exactly what the Dockerfile copies', () => {
  const sent = linesOf('.dockerignore').flatMap((line) => (line.startsWith('!') ? [line.slice(1)] : []))
  expect(sent.toSorted()).toEqual([...new Set(copied)].toSorted())
})

test('a gateway starts with only the files of the image, and answers', async () => {
  for (const name of copied) {
    mkdirSync(dirname(join(image, name)), { recursive: true })
    cpSync(join(checkout, name), join(image, name), { recursive: true, filter: (path) => !path.endsWith('.test.ts') })
  }
  for (const path of [...packagesThatRun(), 'node_modules/.bin/bun']) {
    mkdirSync(dirname(join(image, path)), { recursive: true })
    if (existsSync(join(checkout, path))) symlinkSync(join(checkout, path), join(image, path))
  }
  expect(Bun.spawnSync([process.execPath, join(image, 'scripts/bundle.ts')]).exitCode).toBe(0)
  for (const file of new Bun.Glob('dist/*/main.js').scanSync(image)) {
    appendFileSync(join(image, file), `process.stderr.write('from the bundle\\n')`)
  }
  const gateway = await cli.serve([], { HOST: '0.0.0.0' })
  expect((await gateway.chat()).status).toBe(200)
  expect(gateway.output()).toContain('from the bundle')
  gateway.signal('SIGTERM')
  expect(await gateway.exited).toBe(0)
})
