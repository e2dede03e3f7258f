import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { environmentVariables } from '../src/config/environment.ts'
import { vendors } from '../src/vendors/index.ts'

/**
 * `npm test`: runs the tests without a developer's own keys, database or settings, which must neither be spent nor
 * decide a result. They are removed before the tests' process begins, since whatever a test starts inherits the
 * environment that its process began with.
 */
const taken = new Set([...environmentVariables, ...[...vendors.values()].flatMap(({ environment }) => environment)])
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !taken.has(name) && !name.startsWith('TURNPIKE_')),
)

// Files run side by side, each worker with a PostgreSQL of its own; modules stay loaded from one file to the next.
// There are two workers more than cores, because a worker spends over half of its time waiting for processes, deadlines
// and videos.
const workersMax = 4
const workers = Math.min(workersMax, availableParallelism() + 2)
// For tests without a timeout of their own: short enough to find one that hangs, long enough for a busy machine.
const timeoutMs = 120_000
const options = [`--parallel=${workers}`, '--no-isolate', `--timeout=${timeoutMs}`]
const tests = spawn(process.execPath, ['test', ...options, ...process.argv.slice(2)], { env, stdio: 'inherit' })
tests.on('exit', (code) => {
  process.exitCode = code ?? 1
})
