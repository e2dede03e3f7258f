import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { makeRoutes, type RouteParts } from '../src/http/routes.ts'
import { makeDocument } from './openapi/document.ts'
import { makeReference } from './openapi/reference.ts'

/** Writes the contract and its reference page; with `--check`, fails if the files on disk are stale. */
const folder = new URL('../src/http/openapi/', import.meta.url)

// Only the description of the routes is read and nothing is served, so the parts are never used.
const document = makeDocument(makeRoutes({} as RouteParts))
const files = {
  'openapi.json': `${JSON.stringify(document, null, 2)}\n`,
  'reference.html': makeReference(document),
}

const isCheck = process.argv.includes('--check')
for (const [name, content] of Object.entries(files)) {
  const file = fileURLToPath(new URL(name, folder))
  if (!isCheck) writeFileSync(file, content)
  else if (readFileSync(file, 'utf8') !== content) {
    process.stderr.write(`${file} is stale: npm run openapi\n`)
    process.exitCode = 1
  }
}
