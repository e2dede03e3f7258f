import { expect, test } from 'bun:test'
import { GuardRefusal } from '../../base/untrusted-url.ts'
import { GatewayError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { ChatCodec } from '../../capabilities/chat.ts'
import type { Conversation } from '../../capabilities/conversation.ts'
import { drawImage } from '../../sandbox/files/image.ts'
import { LinkTime } from '../../upstream/link-time.ts'
import type { FetchLink } from '../../upstream/links.ts'
import type { Channel } from '../../upstream/channels.ts'
import type { Route } from '../../upstream/channels.ts'
import { anthropicChat } from '../../wire/anthropic/chat.ts'
import { openaiChat } from '../../wire/openai/chat.ts'
import { responsesChat } from '../../wire/responses/chat.ts'
import type { ChatRouted } from './chat.ts'
import { inlineLinks, inlineMedia, linksInAsk } from './inline-media.ts'

const route = { channel: { baseUrl: 'https://v' } as Channel, credential: 'k', upstreamModel: 'm' } satisfies Route
const native = { messages: [] }
const routed = {
  route,
  signal: new AbortController().signal,
  ask: { native },
  linkTime: new LinkTime(),
  elapsedMs: () => 0,
}

function talkOf(...urls: readonly string[]): Conversation {
  const images = urls.map((url) => ({ kind: 'image' as const, media: { kind: 'url' as const, url } }))
  return {
    system: [],
    turns: [
      { role: 'user', blocks: [{ kind: 'text', text: 'Look' }, ...images.slice(0, 1)] },
      { role: 'assistant', blocks: [{ kind: 'tool-call', id: 'c', name: 'f', argumentsText: '{}' }] },
      { role: 'user', blocks: [{ kind: 'tool-result', callId: 'c', isError: false, blocks: images.slice(1) }] },
    ],
    tools: [],
    hostedTools: [],
    stop: [],
  }
}

function fetching(mediaType: string, bytes: number) {
  const asked: string[] = []
  const fetchLink: FetchLink = async ({ transport, url }) => {
    asked.push(`${transport} ${url}`)
    return { mediaType, body: new Uint8Array(bytes).fill(65), header: () => mediaType }
  }
  return { asked, fetchLink }
}

const never = () => false

test('each link in a conversation is fetched once through the guarded fetch, wherever it occurs', async () => {
  const { asked, fetchLink } = fetching('image/png', 3)
  const talk = await inlineMedia(talkOf('https://h/a', 'https://h/a', 'https://h/b'), never, routed, fetchLink)
  expect(asked.toSorted()).toEqual(['guarded https://h/a', 'guarded https://h/b'])
  const inline = { kind: 'image', media: { kind: 'bytes', mediaType: 'image/png', base64: 'QUFB' } } as const
  expect(talk.turns[0]?.blocks[1]).toEqual(inline)
  expect(talk.turns[2]?.blocks[0]).toMatchObject({ blocks: [inline, inline] })
})

test('a link that the vendor reads itself stays a link, but is refused as an image', async () => {
  const { asked, fetchLink } = fetching('image/png', 3)
  const video = { kind: 'video', media: { kind: 'url', url: 'https://youtu.be/x' } } as const
  const talk: Conversation = { ...talkOf(), turns: [{ role: 'user', blocks: [video] }] }
  expect(await inlineMedia(talk, () => true, routed, fetchLink)).toBe(talk)
  expect(asked).toEqual([])
  expect(inlineMedia(talkOf('https://youtu.be/x'), () => true, routed, fetchLink)).rejects.toMatchObject({
    details: { param: 'messages' },
  })
})

test.each([
  ['too many links', talkOf(...Array.from({ length: 17 }, (_, i) => `https://h/${i}`)), 'image/png', 1],
  ['a link to a web page', talkOf('https://h/a'), 'text/html', 1],
  ['a link to a video in place of an image', talkOf('https://h/a'), 'video/mp4', 1],
])('linked media is refused: %s', async (_name, talk, mediaType, bytes) => {
  const { fetchLink } = fetching(mediaType, bytes)
  expect(inlineMedia(talk, never, routed, fetchLink)).rejects.toMatchObject({ kind: 'bad-request' })
})

test('parallel fetches share the size limit, and unused room goes to later ones', async () => {
  const rooms: number[] = []
  const fetchLink: FetchLink = async ({ bytesMax }) => {
    rooms.push(bytesMax)
    return { mediaType: 'image/png', body: new Uint8Array(1), header: () => null }
  }
  const links = Array.from({ length: 8 }, (_, i) => `https://h/${i}`)
  await inlineMedia(talkOf(...links), never, routed, fetchLink)
  expect(rooms).toHaveLength(8)
  for (const room of rooms) expect(room).toBeGreaterThan(5 * 1024 * 1024 - 8)
  expect(rooms.slice(0, 4).reduce((sum, room) => sum + room)).toBeLessThanOrEqual(20 * 1024 * 1024)
})

test('all links of a request share a time, beyond which its server is too slow', async () => {
  let now = 0
  const fetchLink: FetchLink = async (_link, _channel, signal) => {
    signal.throwIfAborted()
    now += 9_000
    return { mediaType: 'image/png', body: new Uint8Array(1), header: () => null }
  }
  const asked = { ...routed, linkTime: new LinkTime(), elapsedMs: () => now }
  const links = Array.from({ length: 16 }, (_, i) => `https://h/${i}`)
  const thrown = await inlineMedia(talkOf(...links), never, asked, fetchLink).catch((error: unknown) => error)
  expect(thrown).toMatchObject({ kind: 'bad-request', details: { param: 'messages', code: 'invalid_url' } })
  expect(now).toBeLessThan(60_000)
})

const refused: FetchLink = () => Promise.reject(new GuardRefusal('unresolved'))

const shown = 'messages[1].content[1]'

function imageAt(at: string, url: string): Conversation {
  const image = { kind: 'image', media: { kind: 'url', url }, at } as const
  return { ...talkOf(), turns: [{ role: 'user', blocks: [image] }] }
}

test('a link that cannot be fetched is reported at its own field, not where the same text occurs', async () => {
  const url = 'https://h/a'
  const content = [
    { type: 'text', text: url },
    { type: 'image_url', name: url, image_url: { url } },
  ]
  const native = {
    metadata: { url },
    messages: [
      { role: 'user', content: url },
      { role: 'user', content },
      { role: 'user', content },
    ],
  }
  const { fetchLink } = fetching('text/html', 1)
  for (const fetch of [refused, fetchLink]) {
    const talk = imageAt(shown, url)
    const thrown: unknown = await inlineMedia(talk, never, { ...routed, ask: { native } }, fetch).catch(
      (error: unknown) => error,
    )
    const param = `${shown}.image_url.url`
    expect(thrown).toMatchObject({ kind: 'bad-request', details: { param, code: 'invalid_url' } })
    expect(String(thrown)).toContain(`Invalid '${param}': `)
  }
})

test('the refusal of a link under a very long field name stays short', async () => {
  const url = 'https://h/a'
  const native = { messages: [{}, { content: [{}, { ['x'.repeat(100_000)]: { url } }] }] }
  const talk = imageAt(shown, url)
  const thrown: unknown = await inlineMedia(talk, never, { ...routed, ask: { native } }, refused).catch(
    (error: unknown) => error,
  )
  if (!(thrown instanceof GatewayError)) throw new Error('it was not refused')
  expect(thrown).toMatchObject({ kind: 'bad-request', details: { code: 'invalid_url' } })
  expect(thrown.message.length + (thrown.details.param ?? '').length).toBeLessThan(5_000)
})

test('in an ask that passes through, every link becomes a data: URL and nothing else changes', async () => {
  const [image, video] = ['https://h/a.png', 'https://h/b.mp4']
  const words = { type: 'text', text: `Compare ${image} with it.` }
  const asked = (first: string, second: string) => ({
    model: 'm',
    metadata: { url: image },
    messages: [
      { role: 'system', content: image },
      {
        role: 'user',
        name: 'me',
        content: [
          words,
          { type: 'image_url', image_url: { url: first, detail: 'low' } },
          { type: 'image_url', image_url: { url: 'data:image/png;base64,AA' } },
          { type: 'video', video: [first, 'data:image/png;base64,AA'] },
          { type: 'video_url', video_url: { url: second }, fps: 2 },
          { type: 'input_audio', input_audio: { data: 'AA', format: 'wav' } },
          { type: 'file', file: { file_data: 'data:application/pdf;base64,AA' } },
        ],
      },
    ],
  })
  const fetchLink: FetchLink = async ({ transport, url }) => {
    expect(transport).toBe('guarded')
    const mediaType = url === image ? 'image/png' : 'video/mp4'
    return { mediaType, body: new Uint8Array(3).fill(65), header: () => mediaType }
  }
  const chat = { ...routed, codec: openaiChat, ask: { native: asked(image, video) } } as unknown as ChatRouted
  const { ask } = await inlineLinks(chat, linksInAsk(chat), fetchLink)
  expect(ask.native).toEqual(asked('data:image/png;base64,QUFB', 'data:video/mp4;base64,QUFB'))
  expect(linksInAsk({ ...chat, ask })).toEqual([])
})

const mib = 1024 * 1024

/** Serves files of these sizes as the guarded fetch does: those with the most bytes arrive first. */
function servingFiles(sizes: Readonly<Record<string, number>>) {
  const waiting: { readonly bytes: number; arrive(): void }[] = []
  const fetchLink: FetchLink = async ({ url, bytesMax }) => {
    const bytes = sizes[url] ?? 0
    await new Promise<void>((arrive) => {
      waiting.push({ bytes, arrive })
      setImmediate(() => {
        waiting.sort((a, b) => a.bytes - b.bytes)
        waiting.pop()?.arrive()
      })
    })
    if (bytes > bytesMax) throw new GuardRefusal('too-large')
    return { mediaType: 'image/png', body: new Uint8Array(bytes), header: () => null }
  }
  return fetchLink
}

test.each([
  ['one file of nearly all the room', [19 * mib]],
  ['a large file beside small ones', [1, 12 * mib, 1, 1, 1, 1]],
  ['a file of a whole share before others have arrived', [1, 1, 1, 5 * mib, 3 * mib, 3 * mib]],
  ['files that fill the room', [5 * mib, 5 * mib, 5 * mib, 5 * mib]],
])('linked files within the size limit are accepted, however it is divided: %s', async (_name, bytes) => {
  const sizes = Object.fromEntries(bytes.map((size, i) => [`https://h/${i}`, size]))
  const talk = await inlineMedia(talkOf(...Object.keys(sizes)), never, routed, servingFiles(sizes))
  const shown = JSON.stringify(talk, (name, value: unknown) => (name === 'base64' ? undefined : value))
  expect(shown).not.toContain('"url"')
})

test.each([
  ['one file', [21 * mib]],
  ['several files together', [6 * mib, 6 * mib, 6 * mib, 6 * mib]],
])('linked files beyond the size limit are refused: %s', async (_name, bytes) => {
  const sizes = Object.fromEntries(bytes.map((size, i) => [`https://h/${i}`, size]))
  const refusal = inlineMedia(talkOf(...Object.keys(sizes)), never, routed, servingFiles(sizes))
  expect(await refusal.catch((thrown: unknown) => thrown)).toMatchObject({ kind: 'bad-request' })
})

test.each([
  [
    'messages',
    anthropicChat,
    (url: string) => {
      const image = { type: 'image', source: { type: 'url', url }, cache_control: { type: 'ephemeral' } }
      const document = { type: 'document', source: { type: 'content', content: [image] }, title: url }
      const call = { type: 'tool_use', id: 't', name: 'f', input: { source: { type: 'url', url } } }
      const content = [image, document, { type: 'tool_result', tool_use_id: 't', content: [image] }]
      return {
        messages: [
          { role: 'assistant', content: [call] },
          { role: 'user', content },
        ],
        metadata: { url },
      }
    },
    '{"type":"url","url":"https://h/a"},"cache',
    '{"type":"base64","media_type":"image/png","data":"QUFB"},"cache',
  ],
  [
    'responses',
    responsesChat,
    (url: string) => {
      const parts = [
        { type: 'input_image', image_url: url, detail: 'low' },
        { type: 'input_text', text: url },
      ]
      return {
        input: [
          { role: 'user', content: parts },
          { type: 'function_call_output', call_id: 'c', output: parts },
        ],
      }
    },
    '"image_url":"https://h/a"',
    '"image_url":"data:image/png;base64,QUFB"',
  ],
])(
  'in %s that pass through, the bytes replace every link and nothing else changes',
  async (_name, codec, write, link, bytes) => {
    const asked = write('https://h/a')
    const { asked: fetched, fetchLink } = fetching('image/png', 3)
    const chat = { ...routed, codec, ask: { native: asked } } as unknown as ChatRouted
    const { ask } = await inlineLinks(chat, linksInAsk(chat), fetchLink)
    expect(JSON.stringify(ask.native)).toBe(JSON.stringify(asked).replaceAll(link, bytes))
    expect(fetched).toEqual(['guarded https://h/a'])
    expect(linksInAsk({ ...chat, ask })).toEqual([])
  },
)

async function inlined(codec: ChatCodec, asked: JsonObject, mediaType: string) {
  const chat = { ...routed, codec, ask: { native: asked } } as unknown as ChatRouted
  return (await inlineLinks(chat, linksInAsk(chat), fetching(mediaType, 3).fetchLink)).ask.native
}

const input = (...files: readonly JsonObject[]) => ({ input: [{ role: 'user', content: files }] })

test('in requests that pass through, linked documents become files and plain text', async () => {
  const source = { type: 'url', url: 'https://h/a' }
  const messages = [{ role: 'user', content: [{ type: 'document', source, title: 'A' }] }]
  const plain = { type: 'text', media_type: 'text/plain', data: 'AAA' }
  expect(await inlined(anthropicChat, { messages }, 'text/plain')).toEqual({
    messages: [{ role: 'user', content: [{ type: 'document', source: plain, title: 'A' }] }],
  })
  const file = { type: 'input_file', file_url: 'https://h/a' }
  const bytes = { type: 'input_file', filename: 'document.pdf', file_data: 'data:application/pdf;base64,QUFB' }
  expect(await inlined(responsesChat, input(file, { ...file, filename: 'b.pdf' }), 'application/pdf')).toEqual(
    input(bytes, { ...bytes, filename: 'b.pdf' }),
  )
})

test.each(['image/jpg', 'image/png', 'binary/octet-stream', ''])(
  'a linked image is named by its bytes and not by its server, which says %j',
  async (told) => {
    const body = drawImage({ width: 2, height: 2, format: 'jpeg', seed: 1 })
    const fetchLink: FetchLink = async () => ({ mediaType: told, body, header: () => told })
    const talk = await inlineMedia(talkOf('https://h/a'), never, routed, fetchLink)
    expect(talk.turns[0]?.blocks[1]).toMatchObject({ media: { kind: 'bytes', mediaType: 'image/jpeg' } })
  },
)

test.each([
  ['%PDF-1.7', 'application/octet-stream', 'data:application/pdf;base64,JVBERi0xLjc='],
  ['%PDF-1.7', '', 'data:application/pdf;base64,JVBERi0xLjc='],
  ['Hi', 'text/plain', 'data:text/plain;base64,SGk='],
  ['Hi', 'application/octet-stream', undefined],
])('a linked file that begins with %j and is served as %j is used as %p', async (text, told, used) => {
  const native = input({ type: 'input_file', file_url: 'https://h/a', filename: 'a' })
  const chat = { ...routed, codec: responsesChat, ask: { native } } as unknown as ChatRouted
  const fetchLink: FetchLink = async () => ({ mediaType: told, body: Buffer.from(text), header: () => told })
  const inlining = inlineLinks(chat, linksInAsk(chat), fetchLink)
  if (used === undefined) return expect(inlining).rejects.toThrow('file_url')
  expect((await inlining).ask.native).toEqual(input({ type: 'input_file', filename: 'a', file_data: used }))
})
