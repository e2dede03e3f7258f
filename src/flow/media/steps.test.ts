import { expect, test } from 'bun:test'
import { GatewayError } from '../../base/errors.ts'
import type { Step, StepCall } from '../../vendors/vendor.ts'
import type { CallParts } from '../attempt.ts'
import type { Routed } from '../stages.ts'
import { walkSteps } from './steps.ts'

const channel = { id: 'far', baseUrl: 'https://vendor.example', vendor: { id: 'v' } }
const routed = {
  route: { channel, credential: 'vk-1', upstreamModel: 'm' },
  model: { reasoning: false, efforts: [], outputTokensMax: 0 },
  principal: { accountId: 'acc_1' },
  signal: new AbortController().signal,
} as unknown as Routed

function fetching(count: number): Step<string> {
  const calls = Array.from({ length: count }, (_, at): StepCall => ({
    transport: 'guarded',
    url: `https://h.example/${at}`,
    bytesMax: 1,
  }))
  return { kind: 'calls', calls, next: () => ({ kind: 'answered', answer: 'all of them', used: [] }) }
}

const asItIs = async (answer: unknown) => answer

test('a link that fails aborts the fetches under way, and no other is started', async () => {
  const begun: string[] = []
  const ended: string[] = []
  const fetchLink = (({ url }, _channel, signal) => {
    begun.push(url)
    if (url.endsWith('/3')) return Promise.reject(new GatewayError('bad-request', 'There is nothing.'))
    // Never answers: only the signal ends it.
    return new Promise((_resolve, reject) => {
      signal.addEventListener('abort', () => {
        ended.push(url)
        reject(signal.reason)
      })
    })
  }) as CallParts['fetchLink']
  const walked = await walkSteps({ fetchLink } as CallParts, routed, { start: () => fetching(40), finish: asItIs })
  expect(walked).toMatchObject({ kind: 'failed', error: { kind: 'bad-request', message: 'There is nothing.' } })
  expect(begun).toHaveLength(8)
  expect(ended).toHaveLength(7)
})
