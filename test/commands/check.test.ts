import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { makeCli, type Cli } from '../support/cli.ts'
import { freePort } from '../support/free-port.ts'
import { olderDatabase } from '../support/older-database.ts'
import { sharedPostgres } from '../support/postgres.ts'

// Gateways and some commands are processes of their own, and machines that test are busy.
setDefaultTimeout(120_000)

let cli: Cli
beforeEach(() => {
  cli = makeCli()
})
afterEach(() => cli.close())

const modelAt = (channel: string) =>
  `{ id: my-llama, capability: chat, channels: [{ channel: ${channel}, upstreamModel: x }], prices: { inputPerMillion: "0", outputPerMillion: "0" } }`

describe('turnpike check', () => {
  test('of a file with a mistake in its form, it says that channels and models are checked later', async () => {
    const later = 'Once the settings file is mended, its channels and models are checked, too.'
    cli.write('turnpike.yaml', 'limits: { bodyBytesMax: lots }\nchannels: [{ id: a, vendor: openia }]\n')
    const { code, err } = await cli.run(['check'])
    expect({ code, lines: err.trimEnd().split('\n').length }).toEqual({ code: 1, lines: 2 })
    expect(err).toContain('limits.bodyBytesMax')
    expect(err).toEndWith(`${later}\n`)
    cli.write('turnpike.yaml', 'channels: [{ id: a, vendor: openia }]\n')
    const mended = await cli.run(['check'])
    expect(mended.err).toContain('openia')
    expect(mended.err).not.toContain(later)
  })

  test('the mode without any settings is sandbox, and nothing is created', async () => {
    const { code, out, err } = await cli.run(['check'])
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toContain('sandbox: simulators answer')
    expect(existsSync(join(cli.folder, 'data'))).toBe(false)
  })

  test('a database of an older version is read and not migrated', async () => {
    const file = join(cli.folder, 'data/turnpike.sqlite')
    mkdirSync(join(cli.folder, 'data'))
    await (await olderDatabase({ file }, '0006-delivered')).destroy()
    const database = new Database(file)
    const steps = () => database.query('select name from kysely_migration').all().length
    const before = steps()
    expect((await cli.run(['check'])).code).toBe(0)
    expect((await cli.run(['models'])).code).toBe(0)
    expect(steps()).toBe(before)
    expect((await cli.run(['accounts', 'list'])).code).toBe(0)
    expect(steps()).toBeGreaterThan(before)
    database.close()
  })

  test('addresses, a data folder and a secret that a start could not use are refused', async () => {
    // The second address is reserved for documentation, and no machine has it.
    const hosts = { HOST: '999.1.1.1', ADMIN_HOST: '203.0.113.9', ADMIN_PORT: '18081' }
    const unusable = await cli.run(['check'], { TURNPIKE_DATA: '/dev/null/data', ...hosts })
    expect([unusable.code, ...unusable.err.split('\n')]).toEqual([
      1,
      expect.stringMatching(/^\/dev\/null\/data cannot be used \(TURNPIKE_DATA names the folder\): /),
      '"999.1.1.1" is not an address that this machine can listen on (for PORT)',
      expect.stringMatching(/^port 18081 of 203\.0\.113\.9 \(ADMIN_PORT\) cannot be opened: EADDRNOTAVAIL/),
      '',
    ])
    cli.write('secret', 'short')
    const short = await cli.run(['check'], { TURNPIKE_DATA: cli.folder })
    const whatToDo = 'restore it from a copy, or delete it to have a new one made, under which no key of before works'
    const said = `${cli.folder}/secret holds no secret of at least 32 bytes: ${whatToDo}\n`
    expect([short.code, short.err]).toEqual([1, said])
    expect((await cli.run(['check'], { TURNPIKE_DATA: cli.folder, TURNPIKE_SECRET: 's'.repeat(32) })).code).toBe(0)
    expect((await cli.run(['check'], { TURNPIKE_DATA: join(cli.folder, 'not/there/yet') })).code).toBe(0)
    expect(existsSync(join(cli.folder, 'not'))).toBe(false)
  })

  test('a node on PostgreSQL is warned of an unused SQLite database in its folder', async () => {
    const file = join(cli.folder, 'turnpike.sqlite')
    const onPostgres = {
      TURNPIKE_DATA: cli.folder,
      TURNPIKE_SECRET: 's'.repeat(32),
      DATABASE_URL: await (await sharedPostgres()).emptyDatabase(),
    }
    expect((await cli.run(['check'], onPostgres)).out).not.toContain(file)
    cli.write('turnpike.sqlite', '')
    expect(await cli.run(['check'], onPostgres)).toMatchObject({
      code: 0,
      out: expect.stringContaining(
        `${file} is not used because DATABASE_URL is set: npx turnpike move-to-postgres moves it`,
      ),
    })
  })

  test('a secret that other users can read is accepted, with a warning in check and at every start', async () => {
    cli.write('secret', 's'.repeat(64))
    const [file, variables] = [join(cli.folder, 'secret'), { TURNPIKE_DATA: cli.folder }]
    const says = `${file} can be read or changed by other users of this machine: run chmod 600 on it`
    chmodSync(file, 0o644)
    expect(await cli.run(['check'], variables)).toMatchObject({ code: 0, out: expect.stringContaining(says) })
    const gateway = await cli.serve([], variables)
    expect(gateway.output()).toContain(says)
    chmodSync(file, 0o640)
    expect((await cli.run(['check'], variables)).out).not.toContain(says)
  })

  test.each(['nothing', 'another server', 'the simulators'] as const)(
    'the result says whether simulators answer at SANDBOX_URL, when %s answers there',
    async (who) => {
      const stranger = Bun.serve({ hostname: '127.0.0.1', port: await freePort(), fetch: () => Response.json({}) })
      const simulators = startSandbox({ port: 0, models: () => [] })
      const url = who === 'the simulators' ? simulators.url : stranger.url.origin
      if (who === 'nothing') await stranger.stop(true)
      const { code, out } = await cli.run(['check'], { SANDBOX_URL: url })
      const says = `no simulators answer at SANDBOX_URL (${url}): start them with npx turnpike sandbox`
      const isThere = who === 'the simulators'
      expect([code, out.includes(says)]).toEqual([0, !isThere])
      expect(await cli.json(['check'], { SANDBOX_URL: url })).toMatchObject({ valid: true, simulators_answer: isThere })
      await Promise.all([stranger.stop(true), simulators.stop()])
    },
  )

  test('a port that two listeners would share is refused', async () => {
    cli.write('turnpike.yaml', 'mcp: { port: 19090 }\n')
    const asked = (variables: Record<string, string>) => cli.run(['check'], variables)
    const says = 'turnpike.yaml:1:14 mcp.port: must differ from'
    expect(await asked({ PORT: '19090' })).toMatchObject({ code: 1, err: `${says} PORT\n` })
    expect(await asked({ ADMIN_PORT: '19090' })).toMatchObject({ code: 1, err: `${says} ADMIN_PORT\n` })
    expect(await asked({ ADMIN_PORT: '19090', HOST: '0.0.0.0' })).toMatchObject({ code: 1 })
    expect(await asked({ ADMIN_PORT: '19090', ADMIN_HOST: '127.0.0.2' })).toMatchObject({ code: 0 })
  })

  test('mode, channels and models are shown, and no secret is', async () => {
    cli.write('turnpike.yaml', 'channels:\n  - { id: mine, vendor: groq, keys: ["${GROQ_API_KEY}"], weight: 2 }\n')
    const variables = { GROQ_API_KEY: 'gsk_very-secret', DEEPSEEK_API_KEY: 'also-secret' }
    const { code, out } = await cli.run(['check'], variables)
    expect(code).toBe(0)
    expect(out).toMatch(/^mode +real$/m)
    expect(out).toMatch(/^mine +groq +api\.groq\.com +1 +2 +0$/m)
    expect(out).toMatch(/^deepseek +deepseek +api\.deepseek\.com +1 +1 +0$/m)
    expect(out).not.toContain('secret')
    const shown = await cli.json(['check'], variables)
    expect(shown).toMatchObject({
      mode: 'real',
      file: 'turnpike.yaml',
      database: `${join(cli.folder, 'data/turnpike.sqlite')} (made at the first start)`,
      models: expect.arrayContaining(['deepseek-v4-flash']),
      remarks: [expect.stringContaining('unverified prices')],
    })
    expect(shown).not.toHaveProperty('simulators_answer')
  })

  test('a channel of a server that needs no key has none', async () => {
    cli.write(
      'turnpike.yaml',
      'channels:\n  - { id: local, vendor: compatible, baseUrl: "http://127.0.0.1:1/v1" }\n  - { id: two, vendor: groq, keys: [a, b] }\n',
    )
    const { out } = await cli.run(['check'])
    expect(out).toMatch(/^local +compatible +127\.0\.0\.1:1 +0 +1 +0$/m)
    expect(out).toMatch(/^two +groq +api\.groq\.com +2 +1 +0$/m)
    expect(await cli.json(['check'])).toMatchObject({ channels: [{ keys: 0 }, { keys: 2 }] })
  })

  test("a vendor's variable that is set but not used is listed with the reason", async () => {
    cli.write(
      'turnpike.yaml',
      'channels: [{ id: mine, vendor: groq, keys: [another] }, { id: xai, vendor: openai, keys: ["${MY_KEY}"] }]',
    )
    const keys = { AZURE_OPENAI_API_KEY: 'azure-canary', GROQ_API_KEY: 'groq-canary', XAI_API_KEY: 'xai-canary' }
    const both = { GEMINI_API_KEY: 'google-canary', GOOGLE_API_KEY: 'another-canary' }
    const used = { MY_KEY: 'openai-canary', OPENAI_API_KEY: 'openai-canary', MOONSHOT_API_KEY: 'x', KIMI_API_KEY: 'x' }
    const variables = { ...keys, ...both, ...used }
    const { out } = await cli.run(['check'], variables)
    expect(out.split('\n').filter((line) => line.includes('not used'))).toEqual([
      'AZURE_OPENAI_API_KEY is set and not used: vendor azure needs a channel with a baseUrl in turnpike.yaml (docs/vendors.md).',
      'GROQ_API_KEY is set and not used: the file has channels of vendor groq (docs/vendors.md).',
      'XAI_API_KEY is set and not used: the file has a channel xai of another vendor (docs/vendors.md).',
      'GOOGLE_API_KEY is set and not used: GEMINI_API_KEY has the key of vendor google (docs/vendors.md).',
    ])
    expect(out).not.toContain('canary')
    expect(await cli.json(['check'], variables)).toMatchObject({
      ignored_variables: expect.arrayContaining([{ variable: 'AZURE_OPENAI_API_KEY', why: expect.any(String) }]),
    })
  })

  test('the number of models with unverified prices is shown in real mode only', async () => {
    const sold = await cli.json<{ data: { confidence: string }[] }>(['models'], { PERPLEXITY_API_KEY: 'x' })
    const doubtful = sold.data.filter(({ confidence }) => confidence === 'unverified').length
    expect(doubtful).toBeGreaterThan(0)
    const { out } = await cli.run(['check'], { PERPLEXITY_API_KEY: 'x' })
    expect(out).toContain(`${doubtful} of these models have unverified prices: npx turnpike models says which`)
    const single = await cli.run(['check'], { COHERE_API_KEY: 'x' })
    expect(single.out).toMatch(/^1 of these models has unverified prices: /m)
    expect((await cli.run(['check'])).out).not.toContain('unverified')
  })

  test('cached input that an override leaves dearer than other input is pointed out', async () => {
    const prices = 'inputPerMillion: "0", outputPerMillion: "0"'
    cli.write('turnpike.yaml', `models: [{ id: gpt-4o-mini, prices: { ${prices} } }]\n`)
    expect((await cli.run(['check'])).out).toContain('Cached input costs more than other input on gpt-4o-mini, gpt-4o')
    cli.write('turnpike.yaml', `models: [{ id: gpt-4o-mini, prices: { ${prices}, cachedInputPerMillion: "0" } }]\n`)
    expect((await cli.run(['check'])).out).not.toContain('Cached input')
  })

  test('a malformed vendor key is refused with its place and is not shown', async () => {
    const says = 'the access key and its secret with a colon between them, AK:SK'
    const given = { KLING_API_KEY: 'canary-without-secret' }
    const byVariable = await cli.run(['check'], given)
    expect(byVariable).toMatchObject({ code: 1, err: `environment: KLING_API_KEY must be ${says}\n` })
    expect(await cli.run(['serve'], given)).toMatchObject({ code: 1, err: `turnpike: KLING_API_KEY must be ${says}\n` })
    cli.write('turnpike.yaml', 'channels:\n  - { id: films, vendor: kling, keys: ["AK:SK", "${KLING_API_KEY}"] }\n')
    const err = `turnpike.yaml:2:49 channels[0].keys[1]: a key of vendor "kling" is ${says}\n`
    expect(await cli.run(['check'], given)).toMatchObject({ code: 1, err })
    expect(await cli.run(['serve'], given)).toMatchObject({ code: 1, err: `turnpike: ${err}` })
    expect((await cli.run(['check'], { KLING_API_KEY: 'AK:SK' })).code).toBe(0)
  })

  test('an unknown channel is an error, and one that is merely not configured is not', async () => {
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
    cli.write(
      'turnpike.yaml',
      `${channels}models:\n  - { id: o3, channels: [{ channel: groq }, { channel: openai }] }\n`,
    )
    const both = await cli.run(['check'])
    expect(both.out).toMatch(/^o3 +no channel: channel groq, channel openai are not configured$/m)
  })

  test.each([
    ['trustedProxies: ["foo"]', 'trustedProxies[0]: must be an IP address, or a range such as 10.0.0.0/8'],
    ['trustedProxies: ["10.0.0.0/8", "fd00::/8", "0.0.0.0/0"]', 'trustedProxies[2]: must be an IP address'],
    ['cors: { origins: ["example.com"] }', 'cors.origins[0]: must be an origin'],
    [
      'channels: [{ id: a, vendor: openai, keys: [k], baseUrl: "https://api.openai.com/v1/chat/completions" }]',
      'channels[0].baseUrl: must be the base address alone, without the path of a call such as /chat/completions',
    ],
    ['exchange: { CNY: 0.14 }', 'exchange.CNY: a rate is a decimal above 0, in quotes'],
    [
      'channels: [{ id: a, vendor: azure, keys: [k], baseUrl: "https://a.openai.azure.com/openai/v1?api-version=preview" }]',
      'channels[0].baseUrl: must not have a query, a fragment or spaces',
    ],
    [
      'models: [{ id: mine, capability: chat, vendor: opneai, prices: { inputPerMillion: "1", outputPerMillion: "1" } }]',
      'models[0].vendor: unknown vendor "opneai"; there are: openai, ',
    ],
  ])('%s is refused with the setting and the reason', async (yaml, complaint) => {
    cli.write('turnpike.yaml', yaml)
    const { code, err } = await cli.run(['check'])
    expect(code).toBe(1)
    expect(err).toContain(complaint)
  })

  test('a folder given as the settings file is refused', async () => {
    const { code, err } = await cli.run(['check', '--config', '.'])
    expect([code, err]).toEqual([1, '. is a folder, not a settings file\n'])
  })

  test('every complaint has its file, line and column', async () => {
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
        '  - { id: gpt-4.1, prices: { perSecond: "1" } }',
        '  - { id: gpt-5, prices: { markup: "0" } }',
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
      'mine.yaml:8:23 models[1].from: there is no model nothing',
      expect.stringContaining('mine.yaml:10:23 models[3].colour: no such setting; known here: id, from, '),
      'mine.yaml:11:41 models[4].prices.perSecond: a price for video, but this model does chat',
      'mine.yaml:12:36 models[5].prices.markup: a markup is above 0: "1" sells at the vendor\'s price; what is free has prices of "0"',
      'mine.yaml:13:18 exchange.CNY: a rate is a decimal above 0, in quotes',
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

  test('a key in place of a name is shown neither in the words of a complaint nor in its path', async () => {
    cli.write('turnpike.yaml', 'channels: [{ id: a, vendor: openai, sk-canary-0123456789: x }]\n')
    const shown = 'channels[0].[redacted]'
    const { err } = await cli.run(['check'])
    expect(err).toStartWith(`turnpike.yaml:1:59 ${shown}: no such setting`)
    const { out } = await cli.run(['check', '--json'])
    expect(JSON.parse(out)).toMatchObject({ complaints: [{ path: shown }] })
    expect(err + out).not.toContain('canary')
  })

  test('variables that are not set hide no complaint, nor is a value that they leave open complained of twice', async () => {
    const vendors = ['openai, keys: ["${NOWHERE}"]', 'kling, keys: ["${NOBODY}"]', 'opneai, keys: [x]']
    const channels = vendors.map((vendor, at) => `  - { id: c${at}, vendor: ${vendor} }\n`).join('')
    cli.write('turnpike.yaml', `channels:\n${channels}models: [{ id: mine, from: nothing }]\n`)
    const { code, err } = await cli.run(['check'])
    expect([code, ...err.trimEnd().split('\n')]).toEqual([
      1,
      'turnpike.yaml:2:38: the variable NOWHERE is not set',
      'turnpike.yaml:3:37: the variable NOBODY is not set',
      expect.stringContaining('turnpike.yaml:4:23 channels[2].vendor: unknown vendor "opneai"; '),
      'turnpike.yaml:5:28 models[0].from: there is no model nothing',
    ])
  })

  test.each([
    { text: 'limits:\n  atemptsMax: 3\n', says: 'turnpike.yaml:2:15 limits.atemptsMax: ' },
    { text: 'limits: [\n', says: 'turnpike.yaml:2:1: ' },
    { text: 'log: { level: loud }\n', says: 'turnpike.yaml:1:15 log.level: ' },
    {
      text: 'channels:\n  - { id: a, vendor: openai, keys: ["${NOWHERE}"] }',
      says: 'turnpike.yaml:2:37: the variable NOWHERE is not set',
    },
  ])('check and start refuse with the same message and place: $text', async ({ text, says }) => {
    cli.write('turnpike.yaml', text)
    const { code, err } = await cli.run(['check'])
    expect(code).toBe(1)
    expect(err).toStartWith(says)
    // A start refuses it in the same words.
    expect((await cli.run(['serve'])).err).toStartWith(`turnpike: ${says}`)
  })

  test('a settings file that does not exist is refused', async () => {
    expect(await cli.run(['check', '--config', 'no.yaml'])).toMatchObject({
      code: 1,
      err: 'there is no file no.yaml\n',
    })
  })
})
