import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { makeCli, type Cli } from '../support/cli.ts'

// Every command is a process of its own, and machines that test are busy.
setDefaultTimeout(30_000)

let cli: Cli
beforeEach(() => {
  cli = makeCli()
})
afterEach(() => cli.close())

const modelAt = (channel: string) =>
  `{ id: my-llama, capability: chat, channels: [{ channel: ${channel}, upstreamModel: x }], prices: { inputPerMillion: "0", outputPerMillion: "0" } }`

describe('turnpike check', () => {
  test('without any settings: sandbox mode, and nothing is made', async () => {
    const { code, out, err } = await cli.run(['check'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('sandbox: simulators answer')
    expect(existsSync(join(cli.folder, 'data'))).toBe(false)
  })

  test('what would be served, and no secret', async () => {
    cli.write('turnpike.yaml', 'channels:\n  - { id: mine, vendor: groq, keys: ["${GROQ_API_KEY}"], weight: 2 }\n')
    const variables = { GROQ_API_KEY: 'gsk_very-secret', DEEPSEEK_API_KEY: 'also-secret' }
    const { code, out } = await cli.run(['check'], variables)
    expect(code).toBe(0)
    expect(out).toMatch(/^mode +real$/m)
    expect(out).toMatch(/^mine +groq +api\.groq\.com +1 +2 +0$/m)
    expect(out).toMatch(/^deepseek +deepseek +api\.deepseek\.com +1 +1 +0$/m)
    expect(out).not.toContain('secret')
    const shown = await cli.json<{ mode: string; models: string[] }>(['check'], variables)
    expect(shown).toMatchObject({ mode: 'real', models: expect.arrayContaining(['deepseek-chat']) })
  })

  test('a channel that nobody has is told from one that is merely not configured', async () => {
    const channels = 'channels: [{ id: local, vendor: compatible, baseUrl: "http://127.0.0.1:1/v1" }]\n'
    cli.write('turnpike.yaml', `${channels}models:\n  - ${modelAt('lcoal')}\n`)
    const mistaken = await cli.run(['check'])
    expect([mistaken.code, mistaken.err]).toEqual([
      1,
      'turnpike.yaml:3:61 models[0].channels[0].channel: there is no channel lcoal\n',
    ])
    cli.write('turnpike.yaml', `${channels}models:\n  - ${modelAt('groq')}\n`)
    const { code, out } = await cli.run(['check'])
    expect(code).toBe(0)
    expect(out).toMatch(/^my-llama +no channel: channel groq is not configured$/m)
  })

  test.each([
    ['trustedProxies: ["foo"]', 'trustedProxies[0]: must be an IP address'],
    ['cors: { origins: ["example.com"] }', 'cors.origins[0]: must be an origin'],
  ])('%s is nothing that could be meant', async (yaml, complaint) => {
    cli.write('turnpike.yaml', yaml)
    const { code, err } = await cli.run(['check'])
    expect(code).toBe(1)
    expect(err).toContain(complaint)
  })

  test('every complaint has its line', async () => {
    cli.write(
      'mine.yaml',
      [
        'channels:',
        '  - { id: a, vendor: openai }',
        '  - { id: b, vendor: "${GROQ_API_KEY}", keys: [x] }',
        '  - { id: c, vendor: openai, keys: [x] }',
        '  - { id: c, vendor: deepseek, keys: [x] }',
        'models:',
        '  - { id: gpt-4o, prices: { inputPerMillion: 1 } }',
        '  - { id: mine, from: nothing }',
        '  - { id: copy-of-mine, from: mine }',
        '  - { id: o3, colour: red }',
        'exchange: { CNY: "none" }',
      ].join('\n'),
    )
    const variables = { GROQ_API_KEY: 'gsk_very-secret', TURNPIKE_SECRET: 'short' }
    const { code, out, err } = await cli.run(['check', '--config', 'mine.yaml'], variables)
    expect({ code, out }).toEqual({ code: 1, out: '' })
    expect(err).not.toContain('very-secret')
    expect(err.trimEnd().split('\n')).toEqual([
      'environment: TURNPIKE_SECRET must be at least 32 bytes; try: openssl rand -hex 32',
      'mine.yaml:2:5 channels[0].keys: at least one key is needed',
      expect.stringContaining('mine.yaml:3:22 channels[1].vendor: unknown vendor "[redacted]"; there are: openai'),
      'mine.yaml:5:11 channels[3].id: there are two channels "c"',
      'mine.yaml:7:46 models[0].prices.inputPerMillion: an amount is a decimal in quotes, such as "0.15"',
      'mine.yaml:10:23 models[3].colour: no such setting',
      'mine.yaml:11:18 exchange.CNY: a rate is a decimal above 0, in quotes',
      'mine.yaml:8:23 models[1].from: there is no model nothing',
    ])
    const json = await cli.run(['check', '--config', 'mine.yaml', '--json'], variables)
    expect(json.code).toBe(1)
    expect(JSON.parse(json.out)).toMatchObject({
      valid: false,
      complaints: expect.arrayContaining([
        { file: 'mine.yaml', line: 2, column: 5, path: 'channels[0].keys', message: 'at least one key is needed' },
      ]),
    })
  })

  test.each([
    { text: 'limits:\n  atemptsMax: 3\n', says: 'turnpike.yaml:2:15 limits.atemptsMax: ' },
    { text: 'limits: [\n', says: 'turnpike.yaml:2:1: ' },
    { text: 'log: { level: loud }\n', says: 'turnpike.yaml:1:15 log.level: ' },
    {
      text: 'channels:\n  - { id: a, vendor: openai, keys: ["${NOWHERE}"] }',
      says: 'turnpike.yaml:2:37: the variable NOWHERE is not set',
    },
  ])('$text', async ({ text, says }) => {
    cli.write('turnpike.yaml', text)
    const { code, err } = await cli.run(['check'])
    expect(code).toBe(1)
    expect(err).toStartWith(says)
    // A start refuses it in the same words.
    expect((await cli.run(['serve'])).err).toStartWith(`turnpike: ${says}`)
  })

  test('a file that is not there', async () => {
    expect(await cli.run(['check', '--config', 'no.yaml'])).toMatchObject({
      code: 1,
      err: 'there is no file no.yaml\n',
    })
  })
})

describe('turnpike models', () => {
  type Shown = { data: { id: string; vendor: string; prices: Record<string, string>; why?: string }[] }

  test('prices in the words of the file, with the markup', async () => {
    cli.write('turnpike.yaml', 'models: [{ id: mine, from: gpt-4o-mini, prices: { markup: "2" } }]')
    const { data } = await cli.json<Shown>(['models'])
    expect(data.find(({ id }) => id === 'gpt-4o-mini')?.prices['inputPerMillion']).toBe('0.15')
    expect(data.find(({ id }) => id === 'mine')?.prices['inputPerMillion']).toBe('0.3')
    const { out } = await cli.run(['models'])
    expect(out).toMatch(/^MODEL +VENDOR +CAPABILITIES +INPUT +CACHED +OUTPUT +ABOVE +CONFIDENCE$/m)
    expect(out).toMatch(/^mine +openai +chat +0\.3 +0\.15 +1\.2 +- +listed$/m)
  })

  test('those that are not served say why, under --all', async () => {
    const { data } = await cli.json<Shown>(['models', '--all'], { GROQ_API_KEY: 'x' })
    expect(data.find(({ vendor }) => vendor === 'groq')?.why).toBeUndefined()
    expect(data.find(({ id }) => id === 'gpt-4o')?.why).toBe('no channel: vendor openai is not configured')
  })
})

test('turnpike sandbox answers as the vendors do until it is stopped', async () => {
  const child = Bun.spawn([join(import.meta.dir, '../../bin/turnpike'), 'sandbox', '--json', '--port', '0'], {
    cwd: cli.folder,
    env: { PATH: process.env['PATH'] ?? '' },
    stdout: 'pipe',
  })
  const reader = child.stdout.getReader()
  let text = ''
  while (!text.endsWith('}\n')) text += new TextDecoder().decode((await reader.read()).value)
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
