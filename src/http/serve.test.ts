import { expect, test } from 'bun:test'
import { newRequestId } from '../base/ids.ts'
import { systemClock } from '../base/clock.ts'
import { pushed } from '../base/http/pushed-body.ts'
import { zeroNano } from '../base/money.ts'
import type { Visit } from '../edge/route.ts'
import type { Answer, Limited } from '../flow/stages.ts'
import { serveJob, type Endpoint, type ServeParts } from './serve.ts'

/** What happens to the connection of a request that is answered so, in order. */
async function happened(answer: Answer): Promise<string[]> {
  const told: string[] = []
  const line = {
    authenticate: () => Promise.resolve({}),
    limit: () => Promise.resolve({}),
    async once({ readBody }: Pick<Limited, 'readBody'>) {
      await readBody()
      told.push('the vendor is asked')
      return answer
    },
  }
  const request = new Request('http://gateway.test/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  const connection = {
    follow: () => void told.push('followed'),
  }
  const parts = { line, clock: systemClock, bodyBytesMax: 100, json: { depthMax: 9, keysMax: 9 } }
  const endpoint = { credentialOf: () => undefined } as unknown as Endpoint
  const visit = { request, requestId: newRequestId(), connection, responseHeaders: {} } as unknown as Visit
  await serveJob(parts as unknown as ServeParts, endpoint)(visit)
  return told
}

const contentType = 'application/json'

test('the connection of a whole answer is left to the server', async () => {
  const whole = happened({ kind: 'whole', body: Buffer.from('whole'), contentType, cost: zeroNano })
  expect(await whole).toEqual(['the vendor is asked'])
})

test('a connection is followed while its answer is streamed', async () => {
  const streamed = happened({
    kind: 'stream',
    body: pushed(new ReadableStream()),
    contentType,
    ended: Promise.resolve(),
  })
  expect(await streamed).toEqual(['the vendor is asked', 'followed'])
})
