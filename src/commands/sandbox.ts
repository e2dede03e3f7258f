import { readEnvironment } from '../config/environment.ts'
import { readCatalogue, readChannels, simulatedModels } from '../market.ts'
import { startSandbox } from '../sandbox/sandbox.ts'
import { say, sayJson, table } from './output.ts'
import { loadSettings } from './settings.ts'

/** `turnpike sandbox`: the vendor simulators alone, with every model of the catalogue, until told to stop. */
export function sandbox(options: { config?: string; port?: string; json?: boolean }): void {
  const port = options.port === undefined ? readEnvironment(process.env).sandboxPort : readPort(options.port)
  const { file } = loadSettings(options.config)
  const models = simulatedModels(readCatalogue(file, true), readChannels(file, process.env))
  const simulator = startSandbox({ port, models: () => models })

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
    say(`The simulators of ${vendors.length} vendors answer at ${simulator.url}; any key is good but "bad-key".`)
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

function readPort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port > 65_535) throw new Error(`"${text}" is no port: --port takes 0 to 65535`)
  return port
}
