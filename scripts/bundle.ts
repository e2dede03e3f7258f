import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundleFolder, fingerprintFile, fingerprintOfSources } from '../src/base/program-files.ts'

/**
 * `npm ci` runs this at its end: the sources and the packages they use become a few files in `dist/`, which load in
 * half the time (docs/decisions/0018).
 */
const root = join(import.meta.dir, '..')
const threads = [...new Bun.Glob('src/**/*-worker.ts').scanSync(root)]

// Made beside the place where it belongs, so that it is there whole or not at all.
const folder = mkdtempSync(join(root, 'dist-'))
try {
  const fingerprint = fingerprintOfSources()
  await Bun.build({
    entrypoints: ['src/main.ts', ...threads].map((path) => join(root, path)),
    outdir: folder,
    target: 'bun',
    splitting: true, // what is loaded only when it is used stays so
    naming: '[name].[ext]',
  })
  writeFileSync(join(folder, fingerprintFile), fingerprint)
  rmSync(bundleFolder, { recursive: true, force: true })
  renameSync(folder, fileURLToPath(bundleFolder))
} finally {
  rmSync(folder, { recursive: true, force: true })
}
