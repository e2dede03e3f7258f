import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { makeCli, type Cli } from '../support/cli.ts'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { says } from '../support/streams.ts'

// Commands are run by a process of their own, and machines that test are busy.
setDefaultTimeout(120_000)

type Sums = { data: Record<string, string | number>[]; next: null }
type Requests = { data: { id: string; model: string; cost: string }[]; next: string | null }

let cli: Cli
let gateway: TestGateway

beforeAll(async () => {
  gateway = await startTestGateway({ mode: 'leased' })
  cli = makeCli({ data: gateway.folder })
  for (const model of ['gpt-4o-mini', 'gpt-4o-mini', 'gpt-4o']) {
    await (await gateway.post('/v1/chat/completions', says('Hello!', { model }))).text()
  }
  await gateway.assertBooks()
})
afterAll(async () => {
  await cli.close()
  await gateway.close()
})

test('usage is summed by model and by day, as JSON and as a table', async () => {
  const { data } = await cli.json<Sums>(['usage', '--by', 'model'])
  expect(data.map(({ model, requests }) => [model, requests])).toEqual([
    ['gpt-4o', 1],
    ['gpt-4o-mini', 2],
  ])
  expect(await cli.json<Sums>(['usage', '--model', 'gpt-4o', '--account', 'demo'])).toMatchObject({
    data: [{ requests: 1, cost: data[0]?.['cost'] ?? '' }],
    next: null,
  })
  const { out } = await cli.run(['usage', '--by', 'day'])
  const [head, ...days] = out.trimEnd().split('\n')
  expect(head).toMatch(/^DAY +REQUESTS +COST +VENDOR COST +INPUT +CACHED +OUTPUT$/)
  // One day, or two at midnight.
  const requests = days.map((day) => Number(/^\d{4}-\d\d-\d\d +(\d+) +\$0\.\d+ /.exec(day)?.[1]))
  expect(requests.reduce((sum, count) => sum + count, 0)).toBe(3)
  expect((await cli.run(['usage', '--from', '2099-01-01', '--by', 'day'])).out).toBe(
    'No usage was found in sandbox mode.\n',
  )
  expect((await cli.run(['requests', 'list', '--from', '2099-01-01'])).out).toBe(
    'No requests were found in sandbox mode.\n',
  )
})

const linesBy = async (group: string, ...more: string[]) =>
  (await cli.run(['usage', '--by', group, ...more])).out.trimEnd().split('\n')

test('usage by account and by key shows names first and ids last', async () => {
  const sums = 'REQUESTS +COST +VENDOR COST +INPUT +CACHED +OUTPUT +ID$'
  expect(await linesBy('account')).toEqual([
    expect.stringMatching(new RegExp(`^ACCOUNT +${sums}`)),
    expect.stringMatching(/^demo +3 .* acc_[0-9a-f]{32}$/),
  ] as never)
  const byKey = await linesBy('key')
  expect(byKey).toEqual([
    expect.stringMatching(new RegExp(`^ACCOUNT +NAME +KEY +${sums}`)),
    expect.stringMatching(/^demo +first +sk-…[\w-]{4} +3 .* key_[0-9a-f]{32}$/),
  ] as never)
  // By its id, the usage of a key is found from the other mode too, with its names.
  const [key = ''] = /key_\w+$/.exec(byKey[1] ?? '') ?? []
  expect(await linesBy('key', '--mode', 'real', '--key', key)).toEqual(byKey)
  expect(await linesBy('account', '--mode', 'real', '--key', key)).toEqual(await linesBy('account'))
})

test('requests are listed page by page and shown with their attempts', async () => {
  const page = await cli.json<Requests>(['requests', 'list', '--limit', '2'])
  expect(page.data).toHaveLength(2)
  const rest = await cli.json<Requests>(['requests', 'list', '--limit', '2', '--after', page.next ?? ''])
  expect(rest).toMatchObject({ data: [{ model: 'gpt-4o-mini' }], next: null })
  const [newest] = page.data
  expect(await cli.json(['requests', 'show', newest?.id ?? ''])).toMatchObject({
    ...newest,
    attempts: [{ channel: 'openai', upstream_model: 'gpt-4o', status: 200, vendor_cost: newest?.cost ?? '' }],
  })
  const listed = await cli.run(['requests', 'list'])
  const lines = listed.out.trimEnd().split('\n')
  expect(lines).toHaveLength(4)
  expect(lines[0]).toMatch(/^TIME +ACCOUNT +MODEL +STATUS +COST +BASIS +MS +KEY +ID$/)
  expect(lines[1]).toMatch(/Z +demo +gpt-4o +200 /)
  const shown = await cli.run(['requests', 'show', newest?.id ?? ''])
  expect(shown.out).toContain('openai')
  expect(shown.out).toMatch(/^account +acc_\w+ \(demo\)\nkey +key_\w+ \(first, sk-…[\w-]{4}\)$/m)
  // The cost of the request has the sign that the costs of its attempts have.
  expect(shown.out).toMatch(new RegExp(`^cost +\\$${newest?.cost}$`, 'm'))
})

test.each([
  { args: ['usage', '--from', 'yesterday'], says: '"yesterday" is not a time: write unix seconds, or a date' },
  { args: ['usage', '--from', '20270131'], says: '"20270131" is not a time: write unix seconds, or a date' },
  { args: ['usage', '--by', 'month'], says: 'Allowed choices are hour, day' },
  { args: ['usage', '--account', 'nobody'], says: 'there is no account "nobody" in sandbox mode' },
  { args: ['usage', '--key', 'key_nobody'], says: 'there is no key "key_nobody"; turnpike keys list shows their ids' },
  { args: ['requests', 'list', '--limit', '101'], says: '--limit takes a number from 1 to 100' },
  { args: ['requests', 'list', '--after', 'req_0'], says: 'There is no such request' },
  { args: ['requests', 'show', 'req_0'], says: 'there is no request "req_0"; turnpike requests list shows their ids' },
  { args: ['requests', 'show', 'req_0', '--mode', 'real'], says: "unknown option '--mode'" },
])('$args is refused', async ({ args, says }) => {
  const { code, out, err } = await cli.run(args)
  expect({ code, out }).toEqual({ code: 1, out: '' })
  expect(err).toContain(says)
})

test('usage of a period that is not in whole hours states the period that is summed', async () => {
  const period = ['--from', '2026-01-01T10:20:00Z', '--to', '2099-01-01T10:20:00Z']
  const { out } = await cli.run(['usage', ...period])
  expect(out).toEndWith('\n\nSums cover whole hours: here from 2026-01-01 10:00Z to 2099-01-01 11:00Z.\n')
  expect((await cli.run(['usage', '--to', '2099-01-01T10:20:00Z'])).out).toEndWith('here to 2099-01-01 11:00Z.\n')
  expect((await cli.run(['usage', '--from', '2026-01-01T10:00:00Z'])).out).not.toContain('whole hours')
})

test('settings that cannot be read stop no command that needs none', async () => {
  cli.write('turnpike.yaml', 'channels: none')
  expect((await cli.run(['usage'])).err).toContain('turnpike.yaml')
  expect((await cli.run(['requests', 'show', 'req_0'])).err).toContain('there is no request "req_0"')
})
