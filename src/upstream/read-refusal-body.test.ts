import { expect, test } from 'bun:test'
import { scriptedExchange } from '../../test/support/scripted-exchange.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { GatewayError } from '../base/errors.ts'
import { decodeUtf8 } from '../base/utf8.ts'
import { vendors } from '../vendors/index.ts'
import { readRefusalBody } from './read-refusal-body.ts'

test.each([...vendors])('a refusal of %s that is too long to be read is judged by its status', async (_id, vendor) => {
  const body = decodeUtf8(await readRefusalBody(scriptedExchange(400, ['x'.repeat(2_000_000)])))
  const secrets = { baseUrl: 'https://vendor.example', credential: 'key:secret' }
  const kindOf = (status: number) => vendor.explain({ status, retryAfterSeconds: 1, body }, secrets).error.kind
  expect([400, 422].map(kindOf)).toEqual(['upstream-rejected', 'upstream-rejected'])
  expect([401, 404, 500].map(kindOf)).not.toContain('upstream-rejected')
})

test('a refusal that breaks off is not taken for one that is too long', async () => {
  const cut = new GatewayError('upstream-failed', 'cut')
  expect(await thrownBy(readRefusalBody(scriptedExchange(400, ['{', cut])))).toBe(cut)
})
