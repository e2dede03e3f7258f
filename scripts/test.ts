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

// Files run side by side, each worker with a PostgreSQL of its own. Modules stay loaded from one file to the next.
const workersMax = 4
const workers = Math.min(workersMax, availableParallelism())
const options = [`--parallel=${workers}`, '--no-isolate']
const tests = spawn(process.execPath, ['test', ...options, ...process.argv.slice(2)], { env, stdio: 'inherit' })
tests.on('exit', (code) => {
  process.exitCode = code ?? 1
})
