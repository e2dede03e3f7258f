import { expect, test } from 'bun:test'
import { ConfigError, readConfigFile } from './file.ts'

/** What is said of a text that is no YAML, with the places. */
function faults(text: string): string[] {
  try {
    readConfigFile('turnpike.yaml', text, {})
  } catch (thrown) {
    if (!(thrown instanceof ConfigError)) throw thrown
    return thrown.complaints.map(({ line, column, message }) => `${line}:${column} ${message}`)
  }
  throw new Error('it was accepted')
}

const inBrackets =
  'between { and }, or [ and ]: a comma or the closing bracket is missing, a text with a colon is not in quotes, or an item has a dash'
const colonMissing = 'a colon is missing after this name, or the line below is indented too far'
const quotedStart = 'a text that begins with @, %, |, >, !, a comma or a backquote is written in quotes'
const ended =
  'the value before this has ended: nothing may follow it, and a new name begins in the column of those above it'

test.each([
  ['log: { level: info }\nlog: { level: warn }\n', '2:1 this name stands above already: remove one of the two'],
  ['log:\n\tlevel: info\n', '2:1 Tabs are not allowed as indentation'],
  ['models:\n  - { id: *, hidden: true }\n', '2:11 a text that begins with * or & is written in quotes'],
  ['log: {}\n---\nlimits: {}\n', '2:1 a second document begins here, but a file may have only one: remove the ---'],
  ['channels:\n  - { id: a vendor: openai }\n', `2:11 ${inBrackets}`],
  ['models: [{ id: "*" prices: {} }]\n', `1:16 ${inBrackets}`],
  ['log: {\n  level: info\n  other: x\n}\n', `2:10 ${inBrackets}`],
  ['trustedProxies: [ - 10.0.0.1 ]\n', `1:19 ${inBrackets}`],
  [
    'channels: [{ keys: [${KEY}, x] }]\n',
    '1:22 between { and }, or [ and ], a variable is written in quotes, such as "${NAME}"',
  ],
  ['channels: [a\nlog: {}\n', '2:1 a closing ] is missing, or is not indented far enough'],
  ['models: [{ id: a }\n', '2:1 a closing ] is missing, or is not indented far enough'],
  ['log: { level: info\n', '2:1 a closing } is missing, or is not indented far enough'],
  ["publicUrl: 'https://x\n", '2:1 the closing quote of a text is missing'],
  [
    'publicUrl: host: 80\n',
    '1:12 a name with a colon follows where a value is expected: write a text with a colon in quotes',
  ],
  ['channels\n  - id: a\n', `1:1 ${colonMissing}`],
  ['publicUrl: x\n  log: {}\n', `1:12 ${colonMissing}`],
  ['log: {}\nlimits\n', `2:1 ${colonMissing}`],
  ['channels: - id: a\n', '1:11 the first item with a dash begins on a line of its own'],
  ['publicUrl: @host\n', `1:12 ${quotedStart}`],
  ['publicUrl: ,host\n', `1:12 ${quotedStart}`],
  ['models: [ |x ]\n', `1:11 ${quotedStart}`],
  ["publicUrl: 'it's'\n", `1:16 ${ended}`],
  ['  log:\n  level: info\n publicUrl: x\n', `3:2 ${ended}`],
  [
    'log: { level: info }}\n',
    '1:21 this has no place here: a bracket closes none that is open, or a line is indented too little',
  ],
])('of %j one thing is said, in words', (text, said) => {
  expect(faults(text)).toEqual([said])
})

test('mistakes on several lines are each said', () => {
  expect(faults('publicUrl: @host\nlog: { level: info }\nlog: { a: b: c }\n')).toEqual([
    `1:12 ${quotedStart}`,
    '3:1 this name stands above already: remove one of the two',
  ])
})

test.each([
  'log: { level: info }\n}\nchannels: [{ keys: [canary] }]\n',
  '  log: {}\n  limits: {}\n publicUrl: x\nchannels: [{ keys: [canary] }]\n',
  'channels:\n  - id: a\n    keys: |canary\n',
  'channels:\n  - id: a\n    keys: !x!canary b\n',
  'channels:\n  - id: a\n    keys: ["canary" canary]\n',
])('a text that is no YAML is not shown, for its words may be secrets: %j', (text) => {
  const said = faults(text)
  expect(said).toHaveLength(1)
  expect(said[0]).not.toContain('canary')
})
