import { systemClock } from '../src/base/clock.ts'
import { readConfigFile } from '../src/config/file.ts'
import { readCatalogue } from '../src/plan.ts'
import { simulatedModels } from '../src/simulated.ts'
import { startSandbox } from '../src/sandbox/sandbox.ts'
import { reportTo } from './control.ts'

/** Runs the simulators in their own process, with a second port that answers with their address. */
const models = simulatedModels(readCatalogue(readConfigFile('bench.yaml', '', {}), true, systemClock), [])
const sandbox = startSandbox({ port: 0, models: () => models })
const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => new Response(sandbox.url) })

reportTo(process, server.port ?? 0)
