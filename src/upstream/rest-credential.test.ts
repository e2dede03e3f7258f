import { expect, test } from 'bun:test'
import { standingClock } from '../../test/support/movable-clock.ts'
import { GatewayError } from '../base/errors.ts'
import { silentLog } from '../base/log.ts'
import { compatible } from '../vendors/compatible/compatible.ts'
import { localCredential, makeChannels, type Channel } from './channels.ts'
import { restCredential } from './rest-credential.ts'

const vendor = compatible({ id: 'v', baseUrl: 'https://v' })
const channel: Channel = { id: 'c', vendor, baseUrl: 'https://v', credentials: ['key'], weight: 1, priority: 0 }

/** Which of two models the key may still be asked for, once it has failed for the first. */
function leftAfter(kind: 'too-many' | 'upstream-failed', restCredentialSeconds?: number, credential = 'key'): string[] {
  const channels = makeChannels([channel], standingClock(), () => 0)
  const resting = { channel, credential, upstreamModel: 'asked' }
  const verdict = { error: new GatewayError(kind, 'no'), ...(restCredentialSeconds && { restCredentialSeconds }) }
  restCredential({ channels: () => channels, log: silentLog }, resting, verdict, 400)
  return ['asked', 'other'].filter((upstreamModel) => !channels.isResting({ ...resting, upstreamModel }))
}

test('a refused key rests for all models, and a key over its rate only for the model of the request', () => {
  expect(leftAfter('upstream-failed', 60)).toEqual([])
  expect(leftAfter('too-many', 1)).toEqual(['other'])
  expect(leftAfter('upstream-failed')).toEqual(['asked', 'other'])
})

test('a server that needs no key cannot refuse it: all its models stay in use', () => {
  expect(leftAfter('upstream-failed', 60, localCredential)).toEqual(['asked', 'other'])
  expect(leftAfter('too-many', 1, localCredential)).toEqual(['other'])
})
