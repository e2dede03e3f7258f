import { afterEach, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { makeCli, type Cli } from '../support/cli.ts'

// Commands share the machine with other tests.
setDefaultTimeout(120_000)

let cli: Cli
beforeEach(() => {
  cli = makeCli()
})
afterEach(() => cli.close())

type Shown = { data: { id: string; vendor: string; prices: Record<string, string>; why?: string }[] }

test('prices are named as in the settings file and include the markup', async () => {
  cli.write('turnpike.yaml', 'models: [{ id: mine, from: gpt-4o-mini, prices: { markup: "2" } }]')
  const { data } = await cli.json<Shown>(['models'])
  expect(data.find(({ id }) => id === 'gpt-4o-mini')?.prices['inputPerMillion']).toBe('0.15')
  expect(data.find(({ id }) => id === 'mine')?.prices['inputPerMillion']).toBe('0.3')
  const { out } = await cli.run(['models'])
  expect(out).toMatch(/^MODEL +VENDOR +CAPABILITIES +INPUT +CACHED +OUTPUT +ABOVE +OTHER +CONFIDENCE +ENDS$/m)
  expect(out).toMatch(/^mine +openai +chat +0\.3 +0\.15 +1\.2 +- +- +listed +2027-01-14$/m)
  expect(out).toContain('Dollars, markup included: per million tokens, and OTHER per what it says.')
})

test('a model that is not sold by the token has its price too, a range where it varies', async () => {
  cli.write('turnpike.yaml', 'models: [{ id: "*", prices: { markup: "2" } }]')
  const { out } = await cli.run(['models'])
  const lines = out.split('\n')
  const other = (id: string) =>
    lines
      .find((line) => line.startsWith(`${id} `))
      ?.split(/ {2,}/)
      .at(-3)
  expect({ tts: other('tts-1'), film: other('gen4-turbo'), pictures: other('dall-e-2') }).toEqual({
    tts: '30/M characters',
    film: '0.1/s',
    pictures: '0.032-0.04/image',
  })
  expect(other('doubao-seedance-2-0-260128')).toMatch(/^[\d.]+-[\d.]+\/M video tokens$/)
  expect(other('gpt-image-1.5')).toMatch(/^[\d.]+\/M image tokens$/)
  const { data } = await cli.json<{ data: { id: string; prices: Record<string, unknown> }[] }>(['models'])
  const priced = (id: string) =>
    other(id) !== '-' || 'inputPerMillion' in (data.find((each) => each.id === id)?.prices ?? {})
  expect(data.map(({ id }) => id).filter((id) => !priced(id))).toEqual([])
})

test('an unknown context size is left out', async () => {
  const { data } = await cli.json<{ data: Record<string, unknown>[] }>(['models'])
  const shown = (wanted: string) => data.find(({ id }) => id === wanted)
  for (const id of ['gen4-turbo', 'gpt-image-1', 'embed-v4.0', 'tts-1']) {
    expect(shown(id)).toMatchObject({ id })
    expect(shown(id)).not.toContainAnyKeys(['context_tokens', 'output_tokens_max'])
  }
  expect(shown('gpt-4o')).toMatchObject({ context_tokens: 128_000, output_tokens_max: 16_384 })
})

test('--all also lists the models that are not served, with the reason', async () => {
  const { data } = await cli.json<Shown>(['models', '--all'], { GROQ_API_KEY: 'x' })
  expect(data.find(({ vendor }) => vendor === 'groq')?.why).toBeUndefined()
  expect(data.find(({ id }) => id === 'gpt-4o')?.why).toBe('no channel: vendor openai is not configured')
})

test('--all lists nothing further where every model is served', async () => {
  expect((await cli.run(['models', '--all'])).out).toBe((await cli.run(['models'])).out)
})
