import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { bundles, fingerprint } from '../src/base/program-files.ts'

/**
 * `npm ci` runs this at its end: the sources and the packages they use become a few files in a folder of `dist/`, which
 * load in half the time (docs/decisions/0018).
 */
const root = join(import.meta.dir, '..')
const threads = [...new Bun.Glob('src/**/*-worker.ts').scanSync(root)]
const folder = fileURLToPath(bundles)
const bundle = join(folder, fingerprint())

await make()
// A gateway that is running may still load parts of the bundle that it was started from, so the last one before stays.
const others = readdirSync(folder).filter((name) => join(folder, name) !== bundle)
const [, ...older] = others.toSorted((a, b) => madeAt(b) - madeAt(a))
for (const name of older) rmSync(join(folder, name), { recursive: true, force: true })

/** Made under another name, so that it is there whole or not at all, also after a power cut. */
async function make(): Promise<void> {
  mkdirSync(folder, { recursive: true })
  const made = mkdtempSync(join(folder, 'new-'))
  const replaced = `${made}-replaced`
  try {
    await Bun.build({
      entrypoints: ['src/main.ts', ...threads].map((path) => join(root, path)),
      outdir: made,
      target: 'bun',
      splitting: true, // what is loaded only when it is used stays so
      naming: '[name].[ext]',
      sourcemap: 'linked', // the log of a bug names lines of the sources
    })
    for (const name of readdirSync(made)) sync(join(made, name))
    chmodSync(made, 0o777 & ~process.umask()) // others than the one who installs it may start it
    // One of the same name may be damaged, or have a package in it that was edited since.
    if (existsSync(bundle)) renameSync(bundle, replaced)
    renameSync(made, bundle)
  } finally {
    for (const each of [made, replaced]) rmSync(each, { recursive: true, force: true })
  }
}

function sync(file: string): void {
  const descriptor = openSync(file, 'r')
  fsyncSync(descriptor)
  closeSync(descriptor)
}

function madeAt(name: string): number {
  return statSync(join(folder, name)).mtimeMs
}
