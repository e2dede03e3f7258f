import { expect, test } from 'bun:test'
import { systemClock } from './base/clock.ts'
import { makeLog } from './base/log.ts'
import { readConfigFile } from './config/file.ts'
import { makeMarket } from './market.ts'
import { vendors } from './vendors/index.ts'
import type { Vendor } from './vendors/vendor.ts'

test('what a server on this machine adds is in the log', () => {
  const logged: string[] = []
  const market = makeMarket({
    file: readConfigFile('settings', 'sandbox: false', {}),
    variables: {},
    environment: { sandboxPort: 0, sandboxUrl: undefined, dataFolder: 'data', databaseUrl: undefined },
    clock: systemClock,
    log: makeLog({ level: 'info', write: (line) => logged.push(line) }),
    hasRealAccount: true,
    closing: { opened() {} },
  })
  const vendor = vendors.get('ollama') as Vendor
  const { id, baseUrl } = vendor
  const channel = { id, vendor, baseUrl, credentials: ['local'], weight: 1, priority: 0 }
  market.addLocal([{ channel, upstreamModels: ['llama3.1:8b', 'phi4'] }])
  expect([...market.current.models.keys()]).toEqual(['llama3.1-8b', 'phi4'])
  expect(logged.map((line) => JSON.parse(line))).toMatchObject([
    { channel: 'ollama', models: 2, msg: 'a model server on this machine was found, and is offered' },
  ])
})
