import { spawnSync } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mutants, placesOf } from './all.ts'
import type { Mutant } from './mutant.ts'

/**
 * Tests of the tests: each known-bad change is made to a copy of the project, and its tests must turn red.
 *   npm run mutants                all of them
 *   npm run mutants -- --only WORD those whose name has the word in it
 */
const root = join(import.meta.dir, '../..')

function main(words: readonly string[]): number {
  const only = words[words.indexOf('--only') + 1]
  const chosen = words.includes('--only') ? mutants.filter(({ name }) => name.includes(only ?? '')) : mutants
  const folder = mkdtempSync(join(tmpdir(), 'turnpike-mutants-'))
  try {
    copyProject(folder)
    const files = [...new Set(chosen.flatMap(({ tests }) => tests))]
    const healthy = runTests(folder, files, allMsMax)
    if (healthy.status !== 0)
      return say([`without any change these are red already: ${files.join(' ')}`, healthy.output], 1)
    const outcomes = chosen.map((mutant) => judge(folder, mutant))
    const alive = outcomes.filter((outcome) => outcome !== 'red')
    return say([`${chosen.length - alive.length} of ${chosen.length} mutants were noticed`], alive.length === 0 ? 0 : 1)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function copyProject(folder: string): void {
  for (const name of ['src', 'test', 'package.json', 'tsconfig.json']) {
    cpSync(join(root, name), join(folder, name), { recursive: true })
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'))
}

function judge(folder: string, mutant: Mutant): 'red' | 'green' | 'moved' {
  const path = join(folder, mutant.file)
  const original = readFileSync(path, 'utf8')
  const places = placesOf(mutant, original)
  if (places !== 1) {
    row('MOVED', mutant, 0, `its text stands ${places} times in ${mutant.file}`)
    return 'moved'
  }
  writeFileSync(path, original.split(mutant.from).join(mutant.to))
  const started = performance.now()
  const { status } = runTests(folder, mutant.tests)
  writeFileSync(path, original)
  const outcome = status === 0 ? 'green' : 'red'
  row(outcome === 'red' ? 'red' : 'GREEN', mutant, performance.now() - started, mutant.tests.join(' '))
  return outcome
}

// A mutant may hang, which counts as noticed.
const oneMsMax = 180_000
const allMsMax = 15 * 60_000
// The timeout of a test without its own: shorter than in the suite, because a hanging test is an expected result here.
const testMsMax = 30_000

function runTests(
  folder: string,
  files: readonly string[],
  msMax = oneMsMax,
): { status: number | null; output: string } {
  const words = ['test', '--bail', `--timeout=${testMsMax}`, ...files.map((file) => `./${file}`)]
  // Leaves out the developer's environment, which must not affect a result.
  const env = { PATH: process.env['PATH'], HOME: folder }
  const options = { cwd: folder, env, encoding: 'utf8', timeout: msMax, killSignal: 'SIGKILL' } as const
  const { status, stderr, stdout } = spawnSync(process.execPath, words, options)
  return { status, output: stdout + stderr }
}

function row(outcome: string, { name }: Mutant, ms: number, note: string): void {
  say([`${outcome.padEnd(6)} ${(ms / 1_000).toFixed(1).padStart(6)} s  ${name.padEnd(70)} ${note}`], 0)
}

function say(lines: readonly string[], status: number): number {
  process.stdout.write(`${lines.join('\n')}\n`)
  return status
}

process.exitCode = main(process.argv.slice(2))
