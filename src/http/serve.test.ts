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
    holdOpen: () => void told.push('held open'),
    follow: () => void told.push('followed'),
    letGo: (bytes: number) => void told.push(`let go with ${bytes} bytes`),
  }
  const parts = { line, clock: systemClock, bodyBytesMax: 100, json: { depthMax: 9, keysMax: 9 } }
  const endpoint = { credentialOf: () => undefined } as unknown as Endpoint
  const visit = { request, requestId: newRequestId(), connection, responseHeaders: {} } as unknown as Visit
  await serveJob(parts as unknown as ServeParts, endpoint)(visit)
  return told
}

const contentType = 'application/json'

// Otherwise the listener would cut off every answer that takes a vendor longer than a connection may be idle.
test('a connection is held open from the end of its body until the answer is there', async () => {
  const whole = happened({ kind: 'whole', body: Buffer.from('whole'), contentType, cost: zeroNano })
  expect(await whole).toEqual(['held open', 'the vendor is asked', 'let go with 5 bytes'])
})

test('a connection is held open and followed while its answer is streamed', async () => {
  const streamed = happened({
    kind: 'stream',
    body: pushed(new ReadableStream()),
    contentType,
    ended: Promise.resolve(),
  })
  expect(await streamed).toEqual(['held open', 'the vendor is asked', 'followed'])
})
