import { join } from 'node:path'
import { systemClock, systemTimers, type Timers } from '../base/clock.ts'
import { PriceWatch } from '../catalogue/price-watch.ts'
import { readEnvironment } from '../config/environment.ts'
import { readCatalogue, readChannels, type PlanOptions } from '../plan.ts'
import { startSandbox, type Sandbox, type SandboxModel, type SandboxOptions } from '../sandbox/sandbox.ts'
import { simulatedModels } from '../simulated.ts'
import { counted, say, sayJson, table, warn } from './output.ts'
import { loadSettings } from './settings.ts'

type Options = { config?: string; host?: string; port?: string; json?: boolean }

/** `turnpike sandbox`: runs the vendor simulators alone, with every model of the catalogue, until told to stop. */
export function sandbox(options: Options): void {
  const environment = readEnvironment(process.env)
  const chosen =
    options.port === undefined ? { port: environment.sandboxPort } : { port: readPort(options.port), setting: '--port' }
  const { file } = loadSettings(options.config)
  const { simulator, models } = simulate(
    {
      ...chosen,
      ...(options.host !== undefined && { hostname: options.host }),
      ...(chosen.port !== 0 && { memory: memoryAt(chosen.port, environment.dataFolder) }),
    },
    { file, variables: process.env, clock: systemClock, timers: systemTimers },
  )

  // Loads the simulators now, so that what was begun before a restart goes on without waiting for a call.
  simulator.warmUp()

  const counts = Map.groupBy(models, ({ vendor }) => vendor)
  const vendors = [...counts]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([vendor, sold]) => ({ vendor, url: simulator.baseUrl(vendor), models: sold.length }))
  if (options.json) {
    sayJson({
      url: simulator.url,
      vendors: vendors.map(({ vendor, url, models }) => ({ vendor, base_url: url, models })),
    })
  } else {
    say(`The simulators of ${counted(vendors.length, 'vendor')} answer at ${simulator.url}.`)
    say('Any key is good but "bad-key", except at Kling, whose pairs are of the form name:name-secret.')
    say()
    say(
      table(
        [
          { name: 'VENDOR', show: ({ vendor }) => vendor },
          { name: 'MODELS', align: 'right', show: ({ models }) => String(models) },
          { name: 'BASE URL', show: ({ url }) => url },
        ],
        vendors,
      ),
    )
    say()
    say(`What was billed: curl ${simulator.url}/__bill    What was asked: curl ${simulator.url}/__calls`)
  }
  const stop = () => void simulator.stop().finally(() => process.exit(0))
  process.on('SIGTERM', stop)
  process.on('SIGINT', stop)
}

type Simulated = Pick<PlanOptions, 'file' | 'variables' | 'clock'> & { readonly timers: Timers }

/**
 * Starts the simulators with every model of the catalogue. The gateways that use them charge by the prices that vendors
 * have announced once those begin, and so do the simulators.
 */
export function simulate(
  options: Omit<SandboxOptions, 'models'>,
  { file, variables, clock, timers }: Simulated,
): { readonly simulator: Sandbox; readonly models: readonly SandboxModel[] } {
  const channels = readChannels(file, variables)
  const prices = new PriceWatch({ clock, timers, change: () => simulator.serve(readModels) })
  const readModels = () => {
    const catalogue = readCatalogue(file, true, clock)
    prices.waitFor(catalogue.priceSpan)
    return simulatedModels(catalogue, channels)
  }
  const models = readModels()
  const simulator = startSandbox({ ...options, models: () => models })
  return { simulator, models }
}

/**
 * The folder is named after the port, so that no two processes write to one. On a free port nothing is kept, because
 * nothing would find the videos again.
 */
function memoryAt(port: number, dataFolder: string) {
  return {
    folder: join(dataFolder, `sandbox-${port}`),
    complain: (cause: unknown) => warn(`The simulators cannot save their state: ${String(cause)}`),
  }
}

function readPort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new Error(`"${text}" is not a port: --port takes 0 to 65535`)
  return port
}
