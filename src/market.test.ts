import { describe, expect, test } from 'bun:test'
import { makeLog } from './base/log.ts'
import { pico } from './base/money.ts'
import { readConfigFile } from './config/file.ts'
import { makeMarket } from './market.ts'
import { handTimers } from '../test/support/hand-timers.ts'
import { standingClock } from '../test/support/movable-clock.ts'
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
  return openTimedMarket(text, write).market
}

/** The clock stands at the last second of 2026. */
function openTimedMarket(text: string, write: (line: string) => void) {
  const clock = standingClock(Date.parse('2026-12-31T23:59:59Z'))
  const timers = handTimers()
  const closers: (() => unknown)[] = []
  const market = makeMarket({
    file: settings(text),
    variables: {},
    environment: { sandboxPort: 0, sandboxUrl: undefined, dataFolder: 'data', databaseUrl: undefined },
    clock,
    timers,
    log: makeLog({ level: 'info', write }),
    hasRealAccount: true,
    closing: { opened: (_, close) => closers.push(close) },
  })
  return { market, clock, timers, close: () => closers.forEach((close) => void close()) }
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

describe('prices that Google has announced for 2027', () => {
  const google = 'channels: [{ id: google, vendor: google, keys: ["test-key"] }]'

  const changed = 'the prices are now those that vendors have announced for this time'

  function openAtGoogle() {
    const logged: string[] = []
    const opened = openTimedMarket(google, (line) => logged.push(JSON.parse(line).msg))
    const input = () => opened.market.current.models.get('gemini-3.8-flash')?.prices.rates.input
    return { ...opened, logged, input }
  }

  test('apply from their moment on, and no sooner', () => {
    const { clock, timers, logged, input } = openAtGoogle()
    expect(timers.waiting).toEqual([1_000])
    timers.fire() // a little early, as timers may be
    expect([input(), logged]).toEqual([pico(750_000n), []])
    expect(timers.waiting).toEqual([1_000])
    clock.advance(1_000)
    timers.fire()
    expect([input(), logged]).toEqual([pico(1_500_000n), [changed]])
  })

  test('no longer apply where the clock had run ahead and is set back, and apply again at their moment', () => {
    const { clock, timers, logged, input } = openAtGoogle()
    clock.advance(86_400_000)
    timers.fire()
    expect(input()).toBe(pico(1_500_000n))
    clock.setBack(86_400_000)
    expect(timers.waiting).toEqual([3_600_000])
    timers.fire()
    expect(input()).toBe(pico(750_000n))
    clock.advance(1_000)
    timers.fire()
    expect([input(), logged]).toEqual([pico(1_500_000n), [changed, changed, changed]])
  })

  test('are waited for once, however often the file changes', () => {
    const { market, timers } = openAtGoogle()
    market.reload(settings(google))
    market.reload(settings(google))
    expect(timers.waiting).toEqual([1_000])
  })

  test('are waited for in steps of an hour, because clocks are set and timers have a longest wait', () => {
    const { market, clock, timers } = openAtGoogle()
    clock.setBack(60 * 86_400_000)
    market.reload(settings(google))
    expect(timers.waiting).toEqual([3_600_000])
    timers.fire()
    expect(timers.waiting).toEqual([3_600_000])
  })

  test('are waited for no longer once the market is closed, also where local servers are found only then', () => {
    const { market, timers, close } = openAtGoogle()
    close()
    expect(timers.waiting).toEqual([])
    market.addLocal([found])
    expect(timers.waiting).toEqual([])
  })
})
