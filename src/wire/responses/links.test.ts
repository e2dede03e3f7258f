import { expect, test } from 'bun:test'
import type { Json, JsonObject } from '../../base/json.ts'
import type { MediaLink } from '../../capabilities/conversation.ts'
import { replaceLinks } from './links.ts'
import { askOf } from './testing.ts'

const url = 'https://example.com/a'
const bytes = 'data:image/png;base64,AAAA'

/** The links that are found in the input, and the input with all of them replaced. */
function replacedIn(input: Json[]) {
  const found: MediaLink[] = []
  const replaced = replaceLinks(askOf({ input }), (one) => {
    found.push(one)
    return bytes
  })
  return { found, input: replaced.native['input'] }
}

const image = (image_url: string) => ({ type: 'input_image', image_url, detail: 'low' })
const message = (...content: JsonObject[]) => ({ role: 'user', content })
const result = (...output: JsonObject[]) => ({ type: 'function_call_output', call_id: 'a', output })

test('links in messages and in the results of tools are replaced, and what stands beside them stays', () => {
  const text = { type: 'input_text', text: url }
  const said = { role: 'assistant', content: url }
  const { found, input } = replacedIn([said, message(text, image(url), image(bytes)), result(image(url))])
  expect(found).toEqual([
    { kind: 'image', url, at: 'input[1].content[1]' },
    { kind: 'image', url, at: 'input[2].output[0]' },
  ])
  expect(input).toEqual([said, message(text, image(bytes), image(bytes)), result(image(bytes))])
})

test.each([
  [{}, { filename: 'document.pdf' }],
  [{ filename: 'a.pdf' }, { filename: 'a.pdf' }],
])('a linked file becomes its bytes under a name: %j', (named, sent) => {
  const { found, input } = replacedIn([{ role: 'user', content: [{ type: 'input_file', file_url: url, ...named }] }])
  expect(found).toEqual([{ kind: 'document', url, at: 'input[0].content[0]' }])
  expect(input).toEqual([{ role: 'user', content: [{ type: 'input_file', ...sent, file_data: bytes }] }])
})
