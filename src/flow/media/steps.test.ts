import { expect, test } from 'bun:test'
import { GatewayError } from '../../base/errors.ts'
import { unlessAborted } from '../../base/within.ts'
import type { Step, StepCall } from '../../vendors/vendor.ts'
import type { Sent, Transport } from '../../upstream/transport.ts'
import type { CallParts } from '../attempt.ts'
import type { Routed } from '../stages.ts'
import { walkSteps } from './steps.ts'

const channel = { id: 'far', baseUrl: 'https://vendor.example', vendor: { id: 'v' } }
const routed = {
  route: { channel, credential: 'vk-1', upstreamModel: 'm' },
  model: { reasoning: false, efforts: [], rules: [], outputTokensMax: 0 },
  principal: { accountId: 'acc_1' },
  signal: new AbortController().signal,
  ask: { stream: false, model: 'm' },
  elapsedMs: () => 0,
} as unknown as Routed
const timeouts = { whole: { totalMs: 1_000 } } as CallParts['timeouts']

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
  const parts = { fetchLink, timeouts } as CallParts
  const walked = await walkSteps(parts, routed, { start: () => fetching(40), finish: asItIs })
  expect(walked).toMatchObject({ kind: 'failed', error: { kind: 'bad-request', message: 'There is nothing.' } })
  expect(begun).toHaveLength(8)
  expect(ended).toHaveLength(7)
})

test('a link that hangs is given up when the time of the whole request is over', async () => {
  const fetchLink = ((_link, _channel, signal) =>
    unlessAborted(signal, new Promise(() => {}))) as CallParts['fetchLink']
  const parts = { fetchLink, timeouts, log: { warn() {} } } as unknown as CallParts
  const late = { ...routed, elapsedMs: () => 990 } as Routed
  const walked = await walkSteps(parts, late, { start: () => fetching(1), finish: asItIs })
  expect(walked).toMatchObject({ kind: 'failed', error: { kind: 'upstream-timeout' } })
})

const failed = (delivery: 'unknown' | 'closed') =>
  ({ kind: 'failed', error: new GatewayError('upstream-failed', 'It broke off.'), delivery }) as const

test('a call whose kept connection was closed is not sent again once a call beside it has failed', async () => {
  const sent: string[] = []
  const answers = new Map<string, (answer: Sent) => void>()
  const send: Transport['send'] = ({ url }) => {
    sent.push(url)
    return new Promise((resolve) => answers.set(url, resolve))
  }
  const channels = { asking() {}, leftOpen() {}, failed: () => false, isResting: () => false }
  const parts = { transport: { send }, channels: () => channels, timeouts, log: { warn() {} } } as unknown as CallParts
  const funds = { sending() {} }
  const request = { ...routed, funds, markVendorCalled() {} } as unknown as Routed
  const calls = ['a', 'b', 'c'].map((url): StepCall => ({ transport: 'vendor', url, headers: {} }))
  const start = (): Step<string> => ({ kind: 'calls', calls, next: () => ({ kind: 'answered', answer: '', used: [] }) })
  const walked = walkSteps(parts, request, { start, finish: asItIs })
  answers.get('a')?.(failed('unknown'))
  await new Promise(setImmediate)
  answers.get('b')?.(failed('closed'))
  await new Promise(setImmediate)
  expect(sent).toEqual(['a', 'b', 'c'])
  answers.get('c')?.(failed('unknown'))
  expect(await walked).toMatchObject({ kind: 'failed', retry: 'no', mayBeCharged: true })
})
