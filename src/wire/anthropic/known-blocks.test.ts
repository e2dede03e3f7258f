import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { refuseUnknownBlocks } from './known-blocks.ts'

const text = (words: string) => ({ type: 'text', text: words })
const user = (...content: JsonObject[]) => ({ role: 'user', content })
const assistant = (...content: JsonObject[]) => ({ role: 'assistant', content })

function refusalOf(messages: readonly JsonObject[]): string | undefined {
  try {
    refuseUnknownBlocks({ messages })
    return undefined
  } catch (thrown) {
    if (!(thrown instanceof GatewayError)) throw thrown
    const { param = '' } = thrown.details
    expect(thrown.message).toStartWith(`Invalid '${param}': expected `)
    return param
  }
}

describe('blocks of unknown or misplaced types', () => {
  const odd = { type: 'imgae', source: {} }
  const call = { type: 'tool_use', id: 'a', name: 'f', input: {} }
  test.each([
    ['in a user message', [user(text('a'), odd)], 'messages[0].content[1].type'],
    ['after something that is not a block', [{ role: 'user', content: ['a', odd] }], 'messages[0].content[1].type'],
    ['in an assistant message', [user(text('a')), assistant(odd)], 'messages[1].content[0].type'],
    ['in a system message', [user(text('a')), { role: 'system', content: [odd] }], 'messages[1].content[0].type'],
    [
      'in a tool result',
      [user(text('a')), assistant(call), user({ type: 'tool_result', tool_use_id: 'a', content: [text('b'), odd] })],
      'messages[2].content[0].content[1].type',
    ],
    [
      'in a document',
      [user({ type: 'document', source: { type: 'content', content: [odd] } })],
      'messages[0].content[0].source.content[0].type',
    ],
    [
      'in a search result',
      [user({ type: 'search_result', source: 'https://h', title: 't', content: [odd] })],
      'messages[0].content[0].content[0].type',
    ],
    [
      'an image in a system message',
      [user(text('a')), { role: 'system', content: [{ type: 'image', source: { type: 'base64' } }] }],
      'messages[1].content[0].type',
    ],
    ['a tool call by the user', [user(text('a'), call)], 'messages[0].content[1].type'],
    [
      'an image by the assistant',
      [user(text('a')), assistant({ type: 'image', source: { type: 'url', url: 'https://h/a.png' } })],
      'messages[1].content[0].type',
    ],
  ])('the block is refused by the path of its type: %s', (_where, messages, param) => {
    expect(refusalOf(messages)).toBe(param)
  })

  test('blocks of hosted tools, tool changes and plain text are accepted', () => {
    const ended = ['web_search', 'advisor', 'made_up_later'].map((name) => ({ type: `${name}_tool_result` }))
    const marks = ['server_tool_use', 'mcp_tool_use', 'mcp_tool_listing', 'fallback'].map((type) => ({ type }))
    const changes = [{ type: 'tool_addition' }, { type: 'tool_removal' }]
    const found = { type: 'tool_result', content: [{ type: 'tool_reference' }, { type: 'browser_state' }] }
    const system = { role: 'system', content: [text('Be brief.'), ...changes] }
    expect(refusalOf([user(text('a'), found, ...changes), assistant(...marks, ...ended, text('b')), system])).toBe(
      undefined,
    )
    expect(refusalOf([{ role: 'user', content: 'words alone' }])).toBe(undefined)
  })
})
