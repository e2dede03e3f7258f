import { afterEach, beforeEach, expect, test } from 'bun:test'
import { simulate } from '../../src/commands/sandbox.ts'
import { readConfigFile } from '../../src/config/file.ts'
import { makeCli, type Cli } from '../support/cli.ts'
import { handTimers } from '../support/hand-timers.ts'
import { standingClock } from '../support/movable-clock.ts'

let cli: Cli
beforeEach(() => {
  cli = makeCli()
})
afterEach(() => cli.close())

test('turnpike sandbox answers at the addresses that it prints, and exits with 0 on SIGTERM', async () => {
  const child = cli.start(['sandbox', '--json', '--port', '0'], {})
  const reader = child.stdout.getReader()
  let text = ''
  while (!text.endsWith('}\n')) {
    const { value, done } = await reader.read()
    if (done) break // what it has printed is then not JSON
    text += new TextDecoder().decode(value)
  }
  const { vendors } = JSON.parse(text) as { vendors: { vendor: string; base_url: string; models: number }[] }
  const openai = vendors.find(({ vendor }) => vendor === 'openai')
  const answer = await fetch(`${openai?.base_url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer any' },
    body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello!' }] }),
  })
  expect(answer.status).toBe(200)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
})

test('its simulators bill by announced prices from their moment on, as the gateways charge that use them', async () => {
  // Google doubles the prices of Gemini 3.8 Flash with the year 2027.
  const clock = standingClock(Date.parse('2026-12-31T23:59:59Z'))
  const timers = handTimers()
  const file = readConfigFile('settings', '', {})
  const { simulator } = simulate({ port: 0 }, { file, variables: {}, clock, timers })
  const cost = async () => {
    const address = `${simulator.baseUrl('google')}/v1beta/models/gemini-3.8-flash:generateContent`
    const body = JSON.stringify({ contents: [{ parts: [{ text: 'Hello!' }] }] })
    const answer = await fetch(address, { method: 'POST', headers: { 'x-goog-api-key': 'any' }, body })
    expect(answer.status).toBe(200)
    const bill = (await (await fetch(`${simulator.url}/__bill`)).json()) as { data: { cost: string }[] }
    return Number(bill.data.at(-1)?.cost)
  }
  try {
    const before = await cost()
    expect(before).toBeGreaterThan(0)
    timers.fire()
    expect(await cost()).toBe(before)
    clock.advance(1_000)
    timers.fire()
    expect(await cost()).toBe(2 * before)
  } finally {
    await simulator.stop()
  }
})
