import { describe, expect, test } from 'bun:test'
import { ChannelError, configuredChannels } from './configured.ts'

const entry = { id: 'mine', keys: ['k'], weight: 1, priority: 0 }

describe('a vendor that has no address of its own', () => {
  test.each(['azure', 'compatible'])('%s needs a base address in its channel', (vendor) => {
    expect(() => configuredChannels([{ ...entry, vendor }], {})).toThrow(ChannelError)
    const baseUrl = 'https://mine.openai.azure.com/openai/v1'
    expect(configuredChannels([{ ...entry, vendor, baseUrl }], {})).toMatchObject([{ id: 'mine', baseUrl }])
  })

  test('a key variable alone does not enable the vendor', () => {
    const variables = { AZURE_OPENAI_API_KEY: 'k', GEMINI_API_KEY: 'k' }
    expect(configuredChannels([], variables).map(({ id }) => id)).toEqual(['google'])
  })
})

describe('a channel from the file', () => {
  test('a channel has the settings that are written in the file', () => {
    const written = { ...entry, vendor: 'openai', keys: ['k', 'l'], weight: 3, priority: 2 }
    expect(configuredChannels([written], {})).toMatchObject([
      { id: 'mine', vendor: { id: 'openai' }, credentials: ['k', 'l'], weight: 3, priority: 2 },
    ])
  })

  test('an id that is used twice is refused', () => {
    const [first, second] = [
      { ...entry, vendor: 'openai' },
      { ...entry, vendor: 'deepseek' },
    ]
    const path = ['channels', 1, 'id']
    expect(() => configuredChannels([first, second], {})).toThrow(expect.objectContaining({ path }) as never)
    expect(configuredChannels([first, { ...second, id: 'other' }], {})).toHaveLength(2)
  })

  test("a channel without a key is refused unless it leads to a server of the operator's own", () => {
    const keyless = { ...entry, keys: [], baseUrl: 'http://127.0.0.1:1/v1' }
    const path = ['channels', 0, 'keys']
    expect(() => configuredChannels([{ ...keyless, vendor: 'openai' }], {})).toThrow(
      expect.objectContaining({ path }) as never,
    )
    for (const vendor of ['ollama', 'compatible']) {
      expect(configuredChannels([{ ...keyless, vendor }], {})).toMatchObject([{ credentials: [expect.any(String)] }])
    }
  })

  test.each([
    ['dashscope', '/api/v1'],
    ['dashscope', '/compatible-mode/v1'],
    ['anthropic', '/v1'],
    ['google', '/v1beta'],
    ['cohere', '/v2'],
    ['elevenlabs', '/v1'],
    ['runway', '/v1'],
    ['kling', '/v1'],
    ['vidu', '/ent/v2'],
    ['pixverse', '/openapi/v2'],
  ])('the base address of %s is refused with %s', (vendor, root) => {
    const baseUrl = 'https://relay.example.com'
    const written = { ...entry, vendor, keys: ['access:secret'] }
    expect(configuredChannels([{ ...written, baseUrl }], {})).toMatchObject([{ baseUrl }])
    expect(() => configuredChannels([{ ...written, baseUrl: baseUrl + root }], {})).toThrow(
      expect.objectContaining({
        path: ['channels', 0, 'baseUrl'],
        message: `the base address of vendor "${vendor}" is written without ${root}, with which its calls begin`,
      }),
    )
  })
})

describe('a key that no vendor can know', () => {
  test.each(['sk-pasted\n', ' ', 'sk with space', 'sk-ключ'])('%j is refused, in the file and in a variable', (key) => {
    const says = 'printable ASCII characters, without spaces or line breaks'
    const inFile = { ...entry, vendor: 'openai', keys: ['k', key] }
    expect(() => configuredChannels([inFile], {})).toThrow(`a key of vendor "openai" is ${says}`)
    expect(() => configuredChannels([], { OPENAI_API_KEY: key })).toThrow(`OPENAI_API_KEY must be ${says}`)
  })

  test.each([
    ['openai', '"sk-abc"'],
    ['openai', "'sk-abc'"],
    ['kling', '"access:secret"'],
  ])('a key of %s that came with its quotes, %s, is refused, in the file and in a variable', (vendor, key) => {
    const says = 'written without quotes around it'
    expect(() => configuredChannels([{ ...entry, vendor, keys: [key] }], {})).toThrow(`is ${says}`)
    const variable = `${vendor.toUpperCase()}_API_KEY`
    expect(() => configuredChannels([], { [variable]: key })).toThrow(`${variable} must be ${says}`)
    expect(configuredChannels([], { [variable]: key.slice(1, -1) })).toHaveLength(1)
  })

  test('the error names the position of the key in the list', () => {
    expect(() => configuredChannels([{ ...entry, vendor: 'openai', keys: ['k', 'k\n'] }], {})).toThrow(
      expect.objectContaining({ path: ['channels', 0, 'keys', 1] }),
    )
  })
})
