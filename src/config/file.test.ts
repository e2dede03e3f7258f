import { describe, expect, test } from 'bun:test'
import { ConfigError, readConfigFile } from './file.ts'

const read = (text: string, variables: Record<string, string> = {}) => readConfigFile('turnpike.yaml', text, variables)

function complaints(text: string, variables: Record<string, string> = {}) {
  try {
    read(text, variables)
  } catch (thrown) {
    if (thrown instanceof ConfigError) return thrown
    throw thrown
  }
  throw new Error('it was accepted')
}

test('an empty file is all defaults', () => {
  for (const text of ['', '\n', '# nothing\n', '---\n']) {
    expect(read(text).settings).toMatchObject({
      channels: [],
      limits: { attemptsMax: 3 },
      timeouts: { connectSeconds: 3 },
    })
  }
})

describe('a mistake in the file', () => {
  test.each([
    ['limits:\n  attemptsMax: 0\n', 2, 'limits.attemptsMax'],
    ['limits:\n  atemptsMax: 3\n', 2, 'limits.atemptsMax'],
    ['timeouts:\n  connectSeconds: -1\n', 2, 'timeouts.connectSeconds'],
    ['\n\nlimit: {}\n', 3, 'limit'],
    ['timeout:\n  connectSeconds: 3\n', 1, 'timeout'],
    ['limits: {}\nlog:\n  # why\n  levels:\n\n    - info\n', 4, 'log.levels'],
    ['channels:\n  - { id: a, vendor: openai }\n  - { id: "A B", vendor: openai }\n', 3, 'channels[1].id'],
    ['channels:\n  - id: a\n    vendor: openai\n    baseUrl: ftp://x\n', 4, 'channels[0].baseUrl'],
    ['channels:\n  - id: a\n    vendor: openai\n    baseUrl: https://x/\n', 4, 'channels[0].baseUrl'],
    ['log:\n  level: loud\n', 2, 'log.level'],
    ['log:\n  level: debug\n', 2, 'log.level'],
    ['tasks:\n  keepDays: 29\n', 2, 'tasks.keepDays'],
    ['sandbox: maybe\n', 1, 'sandbox'],
    ['exchange:\n  yuan: "0.14"\n', 2, 'exchange.yuan'],
    ['limits: {}\nlog:\n  <<: *quiet\n', 3, ''],
    ['limits: {}\n---\nlog: {}\n', 2, ''],
  ])('the complaint names the line and the setting: %j', (text, line, path) => {
    const error = complaints(text)
    expect(error.complaints[0]).toMatchObject({ line, path })
    expect(error.message).toStartWith(`turnpike.yaml:${line}:`)
  })

  test.each([
    ['artifacts:\n  s3: { endpoint: "https://x", bucket: abc, accessKeyId: a }\n', 'is missing'],
    ['limits:\n', 'has no value: write one, or remove the line'],
    ['log: { levl: info }\n', 'no such setting; known here: level'],
    ['webhooks: { allowprivate: true }\n', 'no such setting; known here: allowPrivate'],
    ['exchange: { cny: "0.14" }\n', 'must be three capital letters, such as CNY'],
    [
      'channels: [{ id: a, vendor: compatible, baseUrl: "http://me:canary@127.0.0.1/v1" }]\n',
      'must not have a user name or a password: they would not be sent',
    ],
    [
      'mcp: { hosts: ["https://tools.example.com"] }\n',
      'must be written as in the Host header, such as tools.example.com:8443',
    ],
    ['mcp: { hosts: ["*.example.com"] }\n', 'must be written as in the Host header, such as tools.example.com:8443'],
    ['log: *quiet\n', 'there is no anchor &quiet above this line; a text that begins with * or & is written in quotes'],
    ['sandbox: yes\n', 'must be true or false, without quotes'],
    ['log: { level: debug }\n', 'must be one of info, warn, error, silent'],
    ['billing:\n  mode:\n', 'has no value: write one, or remove the line'],
    ['limits: { bodyBytesMax: 10MB }\n', 'must be a number, without quotes, units or separators'],
    ['limits: { attemptsMax: 1.5 }\n', 'must be a whole number'],
    ['limits: { attemptsMax: 11 }\n', 'must be at most 10'],
    ['tasks: { keepDays: 7 }\n', 'must be at least 30'],
    ['timeouts: { idleSeconds: 0 }\n', 'must be more than 0'],
    ['timeouts: { idleSeconds: .nan }\n', 'must be a number'],
    ['publicUrl: 8080\n', 'must be a text: write it in quotes'],
    ['publicUrl: [a]\n', 'must be a text'],
    ['trustedProxies: 10.0.0.1\n', 'must be a list, such as [one, two]'],
    ['- log\n', 'must be names with values, such as { name: value }'],
    ['exchange: []\n', 'must be names with values, such as { name: value }'],
    ['channels: [{ id: a, vendor: openai, keys: [""] }]\n', 'must not be empty'],
    ['cors: { origins: ["https://*.example.com"] }\n', "must be an origin such as https://example.com, or '*'"],
  ])('%j is explained in words, without repeating its place', (text, message) => {
    expect(complaints(text).complaints[0]?.message).toBe(message)
  })

  test('each of several unknown keys is reported at its own line', () => {
    const unknown = complaints('limit: {}\ntimeout: {}\n').complaints
    expect(unknown.map(({ line, path }) => [line, path])).toEqual([
      [1, 'limit'],
      [2, 'timeout'],
    ])
  })

  test('all mistakes are reported at once', () => {
    const error = complaints('limits:\n  attemptsMax: 0\ntimeouts:\n  idleSeconds: no\n')
    expect(error.complaints.map(({ line }) => line)).toEqual([2, 4])
    expect(error.message.split('\n')).toHaveLength(2)
  })

  test('mistakes are reported from the top of the file to its end', () => {
    const error = complaints('limit: {}\nlog: { level: loud }\ncors: { origins: [x] }\nbilling: { mode: fast }\n')
    expect(error.complaints.map(({ line }) => line)).toEqual([1, 2, 3, 4])
    expect(error.message.split('\n').map((text) => text.split(':')[1])).toEqual(['1', '2', '3', '4'])
  })

  test('invalid YAML is reported with its line', () => {
    expect(complaints('limits: {\n  a: [\n').complaints[0]?.line).toBeGreaterThan(0)
    expect(complaints('a: 1\na: 2\n').complaints[0]?.line).toBe(2)
  })

  test('a file with excessive aliases is refused', () => {
    const lines = Array.from({ length: 6 }, (_, at) => {
      return `x${at}: &x${at} [${Array(10)
        .fill(at === 0 ? 'x' : `*x${at - 1}`)
        .join(', ')}]`
    })
    expect(complaints(lines.join('\n')).message).toStartWith('turnpike.yaml:1:1: Excessive alias count')
  })

  test('a list or a word in place of a map is refused', () => {
    expect(complaints('- a\n- b\n').complaints).not.toEqual([])
    expect(complaints('just words\n').complaints).not.toEqual([])
  })

  test('a later check can complain about the line of a setting', () => {
    const file = read('models:\n  - id: a\n  - id: b\n    from: nothing\n')
    expect(file.complain(['models', 1, 'from'], 'there is no such model').message).toBe(
      'turnpike.yaml:4:11 models[1].from: there is no such model',
    )
    expect(file.complain(['models', 1, 'prices', 'markup'], 'x').complaints[0]).toMatchObject({ line: 3 })
    expect(file.complain(['nowhere'], 'x').complaints[0]).toMatchObject({ line: 1 })
  })
})

describe('variables', () => {
  const channel = 'channels:\n  - { id: a, vendor: openai, keys: ["${KEY}", "x-${KEY}-y"] }\n'

  test('variables are filled in, also inside a text', () => {
    expect(read(channel, { KEY: 'secret' }).settings.channels[0]?.keys).toEqual(['secret', 'x-secret-y'])
  })

  test('variables that are not set are reported by name and line', () => {
    for (const variables of [{}, { KEY: '' }] as Record<string, string>[]) {
      const error = complaints(channel, variables)
      expect(error.complaints[0]).toMatchObject({ line: 2, message: 'the variable KEY is not set' })
    }
  })

  test('a variable that is not set hides no other mistake, and is not called a wrong value as well', () => {
    const text = [
      'limits: { atemptsMax: 3 }',
      'channels:',
      '  - { id: a, vendor: openai, keys: ["${KEY}"], baseUrl: "${BASE}" }',
      'log: { level: loud }',
    ].join('\n')
    expect(complaints(text).message.split('\n')).toEqual([
      expect.stringContaining('turnpike.yaml:1:23 limits.atemptsMax: no such setting'),
      'turnpike.yaml:3:37: the variable KEY is not set',
      'turnpike.yaml:3:57: the variable BASE is not set',
      expect.stringContaining('turnpike.yaml:4:15 log.level: must be one of'),
    ])
    expect(complaints('log: *quiet\npublicUrl: "${URL}"\n').complaints.map(({ line }) => line)).toEqual([1, 2])
    expect(complaints('publicUrl:\n  "${URL}"\n').message).toBe('turnpike.yaml:1:1: the variable URL is not set')
  })

  test.each(['${KEY:-none}', 'x-${KEY', '${}', '${ KEY }', '$KEY'])(
    '%j is refused and not taken for a text',
    (text) => {
      const error = complaints(`channels:\n  - { id: a, vendor: openai, keys: ["${text}"] }\n`, { KEY: 'secret' })
      expect(error.message).toBe(
        'turnpike.yaml:2:37: a variable is written as ${NAME}, without a default or anything else beside its name',
      )
    },
  )

  test('a dollar sign inside a text is plain text', () => {
    const text = 'channels:\n  - { id: a, vendor: openai, keys: ["pa$KEY", "$$5", "$"] }\n'
    expect(read(text, { KEY: 'secret' }).settings.channels[0]?.keys).toEqual(['pa$KEY', '$$5', '$'])
  })

  test('YAML or further variables in the value of a variable are plain text', () => {
    const wild = 'a", "b"]}\n- ${OTHER}'
    expect(read(channel, { KEY: wild, OTHER: 'x' }).settings.channels[0]?.keys[0]).toBe(wild)
  })

  test('values of variables are never shown in a complaint', () => {
    const text = 'channels:\n  - { id: "BAD ID", vendor: openai, keys: ["${KEY}"], weight: "${KEY}" }\n'
    expect(complaints(text, { KEY: 'sk-very-secret' }).message).not.toContain('very-secret')
  })
})
