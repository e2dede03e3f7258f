import { expect, test } from 'bun:test'
import { systemClock } from './base/clock.ts'
import { makeLog } from './base/log.ts'
import { readConfigFile } from './config/file.ts'
import { makeMarket } from './market.ts'
import { vendors } from './vendors/index.ts'
import type { Vendor } from './vendors/vendor.ts'

const vendor = vendors.get('ollama') as Vendor
const found = {
  channel: { id: vendor.id, vendor, baseUrl: vendor.baseUrl, credentials: ['local'], weight: 1, priority: 0 },
  upstreamModels: ['llama3.1:8b', 'phi4'],
}

function settings(text: string) {
  return readConfigFile('settings', `sandbox: false\n${text}`, {})
}

function openMarket(text = '', write: (line: string) => void = () => {}) {
  return makeMarket({
    file: settings(text),
    variables: {},
    environment: { sandboxPort: 0, sandboxUrl: undefined, dataFolder: 'data', databaseUrl: undefined },
    clock: systemClock,
    log: makeLog({ level: 'info', write }),
    hasRealAccount: true,
    closing: { opened() {} },
  })
}

test('the models of a local server are offered and logged', () => {
  const logged: string[] = []
  const market = openMarket('', (line) => logged.push(line))
  market.addLocal([found])
  expect([...market.current.models.keys()]).toEqual(['llama3.1-8b', 'phi4'])
  expect(logged.map((line) => JSON.parse(line))).toMatchObject([
    { channel: 'ollama', models: 2, msg: 'a local model server was found; its models are offered' },
  ])
})

// Two channels with one id would share the requests, and half of them would still go to the local server.
test('a configured channel replaces the local server of the same id until it is removed', () => {
  const elsewhere = 'channels: [{ id: ollama, vendor: ollama, baseUrl: "http://gpu.example:11434/v1" }]'
  const market = openMarket()
  const addresses = () => market.current.channels.all.map(({ baseUrl }) => baseUrl)
  market.addLocal([found])
  expect(addresses()).toEqual([vendor.baseUrl])
  market.reload(settings(elsewhere))
  expect(addresses()).toEqual(['http://gpu.example:11434/v1'])
  market.reload(settings(''))
  expect(addresses()).toEqual([vendor.baseUrl])
})
