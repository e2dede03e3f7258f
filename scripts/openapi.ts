import { readFileSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { makeRoutes, type RouteParts } from '../src/http/routes.ts'
import { makeDocument } from './openapi/document.ts'
import { makeReference } from './openapi/reference.ts'

/** Writes the contract and its reference page; with `--check`, says whether the written ones are what would be written. */
const folder = new URL('../src/http/openapi/', import.meta.url)

// Only what the table says of its routes is read, and nothing is served: the parts are never touched.
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
