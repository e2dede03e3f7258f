import { existsSync } from 'node:fs'
import { bundles, fingerprint, sourceFile } from './base/program-files.ts'

/** What `bin/turnpike` runs: the program, from its bundle if that was made of what is here, else from its sources. */
const bundled = new URL(`${fingerprint()}/main.js`, bundles)
await import((existsSync(bundled) ? bundled : sourceFile('main.ts')).href)
