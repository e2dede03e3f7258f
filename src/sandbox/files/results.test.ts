import { afterAll, describe, expect, test } from 'bun:test'
import { bytesOf, openMedia } from '../media/testing.ts'
import { jsonOf } from '../testing.ts'
import { readImageHeader } from './image-header.ts'

const { sandbox, post } = openMedia()
afterAll(() => sandbox.stop())

const draw = async (prompt: string): Promise<string> => {
  const body = { model: 'dall-e-2', prompt, size: '512x512' }
  const { data } = await jsonOf<{ data: { url: string }[] }>(post('/openai/v1/images/generations', body))
  return data[0]?.url ?? ''
}

describe('a link to a result', () => {
  test('a link serves the image without a key', async () => {
    const response = await fetch(await draw('a fox'))
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/png'])
    expect(readImageHeader(await bytesOf(response))).toMatchObject({ width: 512, height: 512, format: 'png' })
  })

  test('a changed link is refused', async () => {
    const link = await draw('a fox')
    for (const changed of [link.replace('512x512', '4096x4096'), link.replace(/Expires=\d+/, 'Expires=9999999999')]) {
      const response = await fetch(changed)
      expect([response.status, await response.text()]).toEqual([403, expect.stringContaining('SignatureDoesNotMatch')])
    }
  })

  test('an expired link is refused', async () => {
    const response = await fetch(await draw('a fox sandbox:expired'))
    expect([response.status, response.headers.get('content-type')]).toEqual([403, 'application/xml'])
    expect(await response.text()).toContain('Request has expired.')
  })
})
