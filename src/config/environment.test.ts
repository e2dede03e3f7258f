import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { EnvironmentError, environmentVariables, readEnvironment } from './environment.ts'

test('an empty environment is enough', () => {
  expect(readEnvironment({})).toMatchObject({
    host: '127.0.0.1',
    port: 8080,
    databaseUrl: undefined,
    secret: undefined,
  })
})

test('an empty variable counts as absent', () => {
  expect(readEnvironment({ PORT: '', TURNPIKE_SECRET: '', DATABASE_URL: '' })).toMatchObject({ port: 8080 })
})

describe('an unsafe environment', () => {
  const secret = 's'.repeat(32)
  const cases: readonly (readonly [name: string, variables: Record<string, string>])[] = [
    ['TURNPIKE_SECRET', { TURNPIKE_SECRET: 'canary' }],
    ['TURNPIKE_BOOTSTRAP_KEY', { TURNPIKE_BOOTSTRAP_KEY: 'canary' }],
    ['TURNPIKE_BOOTSTRAP_KEY', { TURNPIKE_BOOTSTRAP_KEY: `sk-${'canary'.repeat(9)} ` }],
    ['TURNPIKE_BOOTSTRAP_KEY', { TURNPIKE_BOOTSTRAP_KEY: `adm-${'canary'.repeat(9)}` }],
    ['TURNPIKE_ADMIN_KEY', { TURNPIKE_ADMIN_KEY: `sk-${'canary'.repeat(9)}` }],
    ['TURNPIKE_METRICS_KEY', { TURNPIKE_METRICS_KEY: 'canary' }],
    ['TURNPIKE_METRICS_KEY', { TURNPIKE_METRICS_KEY: `adm-${'canary'.repeat(9)}` }],
    ['TURNPIKE_BOOTSTRAP_KEY', { TURNPIKE_BOOTSTRAP_KEY: `sk-canary${'0'.repeat(25)}` }],
    ['TURNPIKE_ADMIN_KEY', { TURNPIKE_ADMIN_KEY: `adm-canary${'0'.repeat(25)}` }],
    ['TURNPIKE_METRICS_KEY', { TURNPIKE_METRICS_KEY: `mtr-canary${'0'.repeat(25)}` }],
    ['DATABASE_URL', { DATABASE_URL: 'mysql://canary@x', TURNPIKE_SECRET: secret }],
    ['DATABASE_URL', { DATABASE_URL: 'postgres://u:canary/1@x/d', TURNPIKE_SECRET: secret }],
    ['DATABASE_URL', { DATABASE_URL: 'postgres://u:canary#1@x/d', TURNPIKE_SECRET: secret }],
    ['DATABASE_URL', { DATABASE_URL: 'postgres://u:canary@x:5432,y:5432/d', TURNPIKE_SECRET: secret }],
    ['DATABASE_URL', { DATABASE_URL: 'postgres://u:canary@x,y/d', TURNPIKE_SECRET: secret }],
    ['DATABASE_URL', { DATABASE_URL: 'postgres://u:canary@x,y:5432/d', TURNPIKE_SECRET: secret }],
    ['DATABASE_URL', { DATABASE_URL: 'postgres://u:canary@/d?host=x,y', TURNPIKE_SECRET: secret }],
    ['TURNPIKE_SECRET', { DATABASE_URL: 'postgres://u:canary@x/d' }],
    ['PORT', { PORT: '70000' }],
    ['PORT', { PORT: 'eighty' }],
    ['PORT', { PORT: '-80' }],
    ['PORT', { PORT: '80.5' }],
    ['ADMIN_PORT', { PORT: '9090', ADMIN_PORT: '9090' }],
    ['ADMIN_PORT', { PORT: '8081' }],
    ['ADMIN_PORT', { PORT: '9090', ADMIN_PORT: '9090', HOST: '0.0.0.0' }],
    ['ADMIN_PORT', { PORT: '9090', ADMIN_PORT: '9090', HOST: '10.0.0.1', ADMIN_HOST: '0.0.0.0' }],
    ['ADMIN_PORT', { PORT: '9090', ADMIN_PORT: '9090', HOST: '::' }],
    ['ADMIN_PORT', { PORT: '9090', ADMIN_PORT: '9090', HOST: '*' }],
    ['ADMIN_PORT', { PORT: '9090', ADMIN_PORT: '9090', HOST: 'localhost' }],
    ['ADMIN_PORT', { PORT: '9090', ADMIN_PORT: '9090', HOST: '[::1]', ADMIN_HOST: 'localhost' }],
    ['SANDBOX_URL', { SANDBOX_URL: 'canary:9090' }],
    ['SANDBOX_URL', { SANDBOX_URL: 'ftp://canary:9090' }],
    ['SANDBOX_URL', { SANDBOX_URL: 'http://canary:9090/' }],
    ['SANDBOX_URL', { SANDBOX_URL: 'http://canary:9090/openai' }],
    ['SANDBOX_URL', { SANDBOX_URL: 'http://user:canary@127.0.0.1:9090' }],
    ['SANDBOX_URL', { SANDBOX_URL: 'http://canary:90900' }],
    ['SANDBOX_URL', { SANDBOX_URL: 'http://127.0.0.1:9090?canary' }],
  ]
  test.each(cases)('the complaint about %s is one line that does not repeat the value', (name, variables) => {
    let message = ''
    try {
      readEnvironment(variables)
    } catch (thrown) {
      expect(thrown).toBeInstanceOf(EnvironmentError)
      message = String(thrown)
    }
    expect(message).toContain(name)
    expect(message).not.toContain('canary')
    expect(message.split('\n')).toHaveLength(1)
  })
})

test.each([
  'postgres://u:p%40%2F%3F%23@x:5432/d?sslmode=verify-full&sslrootcert=/etc/ca.pem',
  'postgres://u:p@/d?host=/var/run/postgresql',
  'postgres://u@%2Fvar%2Frun%2Fpostgresql/d',
  'postgresql:///d?host=/var/run/postgresql',
  'postgres://u:a,b@x/d?options=-c%20search_path=a,b',
])('DATABASE_URL may be %s', (url) => {
  const secret = 's'.repeat(32)
  expect(readEnvironment({ DATABASE_URL: url, TURNPIKE_SECRET: secret }).databaseUrl).toBe(url)
})

test.each([
  ['postgres://u@x/d?sslmode=require', 'postgres://u@x/d?sslmode=verify-full'],
  ['postgres://u@x/d?sslmode=verify-ca&sslrootcert=/a.pem', 'postgres://u@x/d?sslmode=verify-full&sslrootcert=/a.pem'],
  ['postgres://u@x/d?sslmode=no-verify', 'postgres://u@x/d?sslmode=no-verify'],
  ['postgres://u@x/d?sslmode=disable', 'postgres://u@x/d?sslmode=disable'],
  ['postgres://u@x/d?uselibpqcompat=true&sslmode=require', 'postgres://u@x/d?uselibpqcompat=true&sslmode=require'],
])('DATABASE_URL %s is given to the driver as %s', (given, url) => {
  expect(readEnvironment({ DATABASE_URL: given, TURNPIKE_SECRET: 's'.repeat(32) }).databaseUrl).toBe(url)
})

test('both listeners may have the same port on separate hosts, or port 0', () => {
  const apart = { PORT: '9090', ADMIN_PORT: '9090', ADMIN_HOST: '127.0.0.2' }
  expect(readEnvironment(apart)).toMatchObject({ port: 9090, adminPort: 9090 })
  const byFamily = { ...apart, HOST: '0.0.0.0', ADMIN_HOST: '::1' }
  expect(readEnvironment(byFamily)).toMatchObject({ port: 9090, adminPort: 9090 })
  expect(readEnvironment({ PORT: '0', ADMIN_PORT: '0' })).toMatchObject({ port: 0, adminPort: 0 })
})

test('an IPv6 address may have the brackets that it has in a URL', () => {
  expect(readEnvironment({ HOST: '[::1]', ADMIN_HOST: '[fd00::1]' })).toMatchObject({
    host: '::1',
    adminHost: 'fd00::1',
  })
})

test('well-formed variables are accepted', () => {
  const given = {
    PORT: '0',
    DATABASE_URL: 'postgresql://u:p@x/d',
    TURNPIKE_SECRET: 's'.repeat(32),
    TURNPIKE_BOOTSTRAP_KEY: `sk-${'a'.repeat(32)}`,
    TURNPIKE_ADMIN_KEY: `adm-${'a'.repeat(32)}`,
    TURNPIKE_METRICS_KEY: `mtr-${'a'.repeat(32)}`,
  }
  expect(readEnvironment(given)).toMatchObject({
    port: 0,
    bootstrapKey: given.TURNPIKE_BOOTSTRAP_KEY,
    adminKey: given.TURNPIKE_ADMIN_KEY,
    metricsKey: given.TURNPIKE_METRICS_KEY,
  })
})

test.each(['http://127.0.0.1:9090', 'http://[::1]:9090', 'https://simulators.example', 'http://localhost:80'])(
  'SANDBOX_URL may be %s',
  (url) => {
    expect(readEnvironment({ SANDBOX_URL: url, SANDBOX_PORT: '9090' })).toMatchObject({ sandboxUrl: url })
  },
)

test('docs/operators.md names every variable', () => {
  const page = readFileSync(new URL('../../docs/operators.md', import.meta.url), 'utf8')
  expect(environmentVariables.filter((name) => !page.includes(`\`${name}\``))).toEqual([])
})
