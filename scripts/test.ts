import { spawn } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { vendors } from '../src/vendors/index.ts'

/**
 * `npm test`: a developer's own keys, database or settings must neither be spent nor decide a result. They are taken away
 * before the tests' process begins, since what a test starts inherits the environment that its process began with.
 */
const ours = ['PORT', 'HOST', 'ADMIN_PORT', 'SANDBOX_PORT', 'SANDBOX_URL', 'DATABASE_URL']
const taken = new Set([...ours, ...[...vendors.values()].flatMap(({ environment }) => environment)])
const env = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !taken.has(name) && !name.startsWith('TURNPIKE_')),
)

// Files run side by side, each worker with a PostgreSQL of its own. Modules stay loaded from one file to the next. There is
// a worker more than cores: two in five seconds of a worker are spent waiting for processes, deadlines and films.
const workersMax = 4
const workers = Math.min(workersMax, availableParallelism() + 1)
// A test that nobody gave a time of its own: what hangs is found, and what a busy machine holds up for a while is not.
const timeoutMs = 120_000
const options = [`--parallel=${workers}`, '--no-isolate', `--timeout=${timeoutMs}`]
const tests = spawn(process.execPath, ['test', ...options, ...process.argv.slice(2)], { env, stdio: 'inherit' })
tests.on('exit', (code) => {
  process.exitCode = code ?? 1
})
