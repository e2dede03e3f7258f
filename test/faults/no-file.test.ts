import { afterEach, expect, test } from 'bun:test'
import { startTestGateway, type TestGateway } from '../support/gateway.ts'
import { videosOf } from '../support/ordered-videos.ts'
import { answer, startVendor, type RawVendor } from '../support/vendor.ts'

let gateway: TestGateway
let vendor: RawVendor
afterEach(async () => {
  await gateway.assertBooks()
  await gateway.close()
  await vendor.stop()
})

const { order, ended } = videosOf(() => gateway)

const mp4 = { 'content-type': 'video/mp4' }
const files = [
  answer(200, JSON.stringify({ error: { code: 503, message: 'The file is not ready.' } })),
  answer(200, '<html>Please sign in.</html>', { 'content-type': 'text/html; charset=utf-8' }),
  answer(200, '', mp4),
  answer(200, 'a whole video', mp4),
]

const name = 'models/veo/operations/video-1'

/** How each vendor answers an order, and a question about its task. The link of Veo opens only with our key. */
const vendors = [
  {
    id: 'google',
    model: 'veo-3.1-fast-generate-preview',
    ordered: { name },
    made: (video: { uri: string }) => ({
      name,
      done: true,
      response: { generateVideoResponse: { generatedSamples: [{ video }] } },
    }),
  },
  {
    id: 'vidu',
    model: 'viduq3-turbo',
    ordered: { task_id: 'video-1', state: 'created' },
    made: ({ uri }: { uri: string }) => ({ state: 'success', credits: 10, creations: [{ id: '1', url: uri }] }),
  },
]

test.each(vendors)(
  'an error, a page or nothing in place of a video is not kept as one, and it is fetched again ($id)',
  async ({ id, model, ordered, made }) => {
    let fetches = 0
    vendor = await startVendor((socket, { head }) => {
      const { origin } = new URL(vendor.baseUrl)
      if (head.startsWith('GET /file')) return void socket.write(files[fetches++] ?? answer(404, ''))
      const said = head.startsWith('GET ') ? made({ uri: `${origin}/file.mp4` }) : ordered
      socket.write(answer(200, JSON.stringify(said)))
    })
    const { origin } = new URL(vendor.baseUrl)
    gateway = await startTestGateway({
      yaml: `
sandbox: false
tasks: { pollSeconds: 0.1 }
artifacts: { keep: true }
channels:
  - { id: videos, vendor: ${id}, baseUrl: "${origin}", keys: [vendor-key-of-the-videos] }
`,
    })
    const task = await order({ model, input: { prompt: 'A fox' } })
    const { status, content } = await ended(task.id)
    expect({ status, fetches }).toEqual({ status: 'succeeded', fetches: files.length })
    const kept = await fetch(content?.video_url ?? '')
    expect(await kept.text()).toBe('a whole video')
  },
  60_000,
)
