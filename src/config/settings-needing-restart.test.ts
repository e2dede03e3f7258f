import { expect, test } from 'bun:test'
import { readConfigFile } from './file.ts'
import { settingsNeedingRestart } from './settings-needing-restart.ts'

const read = (yaml: string) => readConfigFile('turnpike.yaml', yaml, {}).settings

test.each([
  ['', '', []],
  ['', 'models: [{ id: o3, hidden: true }]\nexchange: { CNY: "0.15" }\nchannels: [{ id: a, vendor: openai }]', []],
  ['', 'limits: { attemptsMax: 3 }', []],
  ['', 'limits: { attemptsMax: 4 }\nlog: { level: warn }', ['limits.attemptsMax', 'log.level']],
  ['sandbox: true', 'publicUrl: https://gateway.example.com', ['sandbox', 'publicUrl']],
  ['trustedProxies: ["10.0.0.1"]', 'trustedProxies: ["10.0.0.2"]', ['trustedProxies']],
  [
    '',
    'artifacts: { s3: { endpoint: "https://s3.example", bucket: abc, accessKeyId: a, secretAccessKey: b } }',
    ['artifacts.s3'],
  ],
] as const)('the settings that need a restart are named when %p becomes %p', (before, after, waiting) => {
  expect(settingsNeedingRestart(read(before), read(after))).toEqual([...waiting])
})
