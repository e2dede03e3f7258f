import { describe, expect, test } from 'bun:test'
import { ChannelError, configuredChannels } from './configured.ts'

const entry = { id: 'mine', keys: ['k'], weight: 1, priority: 0 }

describe('a vendor that has no address of its own', () => {
  test.each(['azure', 'compatible'])('%s needs the channel’s', (vendor) => {
    expect(() => configuredChannels([{ ...entry, vendor }], {})).toThrow(ChannelError)
    const baseUrl = 'https://mine.openai.azure.com/openai/v1'
    expect(configuredChannels([{ ...entry, vendor, baseUrl }], {})).toMatchObject([{ id: 'mine', baseUrl }])
  })

  test('is not enabled by its variable alone', () => {
    const variables = { AZURE_OPENAI_API_KEY: 'k', GEMINI_API_KEY: 'k' }
    expect(configuredChannels([], variables).map(({ id }) => id)).toEqual(['google'])
  })
})
