import { describe, expect, test } from 'bun:test'
import { askFor, type Body, prompt, refusalOf } from '../support/video-asks.ts'

const t2v = 'wan2.6-t2v'

const wishes = (body: Body, query?: Record<string, string>) => {
  const { wait, timeoutSeconds } = askFor(t2v, { input: prompt, ...body }, query)
  return [wait, timeoutSeconds]
}

describe('wait, timeout and webhook_url', () => {
  test('the body and the query are both read, and the query takes precedence', () => {
    expect(wishes({})).toEqual([false, 60])
    expect(wishes({ wait: true })).toEqual([true, 60])
    expect(wishes({ wait: true, timeout: 300 })).toEqual([true, 300])
    expect(wishes({}, { wait: 'true', timeout: '30' })).toEqual([true, 30])
    expect(wishes({ timeout: 90 }, { wait: 'true' })).toEqual([true, 90])
    expect(wishes({}, { wait: 'false' })).toEqual([false, 60])
    expect(wishes({ wait: true, timeout: 90 }, { wait: 'false', timeout: '30' })).toEqual([false, 30])
    expect(wishes({ wait: false }, { wait: '' })).toEqual([true, 60])
    expect(askFor(t2v, { input: prompt }).webhookUrl).toBeUndefined()
    const webhookUrl = 'https://hooks.example.com:8443/v?x=1'
    expect(askFor(t2v, { input: prompt, webhook_url: webhookUrl }).webhookUrl).toBe(webhookUrl)
  })

  test.each<[Body, Record<string, string>, string]>([
    [{ wait: 'yes' }, {}, 'wait invalid_type'],
    [{}, { wait: 'yes' }, 'wait invalid_value'],
    [{ timeout: 301 }, {}, 'timeout invalid_value'],
    [{ timeout: 0 }, {}, 'timeout invalid_value'],
    [{ timeout: 1.5 }, {}, 'timeout invalid_type'],
    [{}, { timeout: '1e2' }, 'timeout invalid_value'],
    [{ webhook_url: 'http://example.com/' }, {}, 'webhook_url invalid_url'],
    [{ webhook_url: 'example.com' }, {}, 'webhook_url invalid_url'],
    [{ webhook_url: 'https://user:pass@example.com/' }, {}, 'webhook_url invalid_url'],
    [{ webhook_url: 7 }, {}, 'webhook_url invalid_type'],
  ])('the body %j with the query %j is refused', (body, query, refusal) => {
    expect(refusalOf(t2v, { input: prompt, ...body }, query)).toBe(refusal)
  })
})
