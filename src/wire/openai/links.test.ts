import { expect, test } from 'bun:test'
import type { Json } from '../../base/json.ts'
import type { MediaLink } from '../../capabilities/conversation.ts'
import { replaceLinks } from './links.ts'
import { plainAsk } from './testing.ts'

const link = 'https://example.com/a'
const file = 'data:x/y;base64,AAAA'

/** The links that are found in one part of a message, and the part with all of them replaced. */
function replacedIn(part: Json) {
  const found: MediaLink[] = []
  const ask = { ...plainAsk, native: { user: 'ann', messages: [{ role: 'user', content: [part] }] } }
  const replaced = replaceLinks(ask, (one) => {
    found.push(one)
    return file
  })
  const [message] = replaced.native['messages'] as { role: string; content: Json[] }[]
  expect([replaced.model, replaced.native['user'], message?.role]).toEqual([plainAsk.model, 'ann', 'user'])
  return { found: found.map(({ kind, at }) => [kind, at]), part: message?.content[0], isSame: replaced === ask }
}

test.each([
  [{ type: 'image_url', image_url: { url: link, detail: 'low' } }, 'image', 'image_url.url'],
  [{ type: 'video_url', video_url: { url: link } }, 'video', 'video_url.url'],
  [{ type: 'audio_url', audio_url: { url: link } }, 'audio', 'audio_url.url'],
  [{ type: 'file', file: { filename: 'a.pdf', file_data: link } }, 'document', 'file.file_data'],
  [{ type: 'video', video: link }, 'video', 'video'],
  [{ type: 'video', video: [file, link] }, 'image', 'video[1]'],
])('the link of a part is replaced, and what stands beside it stays: %j', (part, kind, place) => {
  const replaced = replacedIn(part)
  expect(replaced.found).toEqual([[kind, `messages[0].content[0].${place}`]])
  expect(JSON.stringify(replaced.part)).toBe(JSON.stringify(part).replace(link, file))
})

// Only at the beginning does the word make it a file of its own.
test.each(['https://example.com/data:image/png', 'HTTP://example.com/', 'file:///etc/passwd', 'oss://bucket/a.png'])(
  'a text with a colon is a link: %s',
  (url) => expect(replacedIn({ type: 'image_url', image_url: { url } }).found).toHaveLength(1),
)

test.each<Json>([
  { type: 'image_url', image_url: { url: file } },
  { type: 'image_url', image_url: { url: 'DATA:image/png;base64,AAAA' } },
  { type: 'file', file: { file_data: 'AAAA' } },
  { type: 'file', file: { file_id: 'file-1' } },
  { type: 'text', text: link },
  { type: 'constructor', constructor: { url: link } },
  'text',
])('a part without a link leaves the ask as it is: %j', (part) => {
  expect(replacedIn(part)).toMatchObject({ found: [], isSame: true })
})
