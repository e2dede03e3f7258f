import { describe, expect, test } from 'bun:test'
import { errorOf } from '../../../test/support/thrown.ts'
import type { JsonObject } from '../../base/json.ts'
import { readUserBlock } from './read-blocks.ts'

const image = (media_type: string): JsonObject => ({
  type: 'image',
  source: { type: 'base64', media_type, data: 'AAAA' },
})

/** The places of an image, whose hold is that of an image in each of them. */
const places: readonly [where: string, put: (block: JsonObject) => JsonObject, path: string][] = [
  ['a message', (block) => block, ''],
  ['a tool result', (block) => ({ type: 'tool_result', tool_use_id: 'a', content: [block] }), '.content[0]'],
  [
    'a document made of blocks',
    (block) => ({ type: 'document', source: { type: 'content', content: [block] } }),
    '.source.content[0]',
  ],
]

describe.each(places)('an image in %s', (_where, put, path) => {
  test.each(['image/png', 'image/webp'])('%s is read', (mediaType) => {
    expect(JSON.stringify(readUserBlock(put(image(mediaType)), 'at'))).toContain(mediaType)
  })

  test.each(['video/mp4', 'application/pdf', ''])(
    '%j in its place is refused, for it may cost far more',
    (mediaType) => {
      const { message, details } = errorOf(() => readUserBlock(put(image(mediaType)), 'at'))
      expect([message, details.param]).toEqual([
        `Invalid 'at${path}.source.media_type': not an image.`,
        `at${path}.source.media_type`,
      ])
    },
  )
})
