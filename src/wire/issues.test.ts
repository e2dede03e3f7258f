import { describe, expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { parseBody, type JsonObject } from '../base/json.ts'
import { messagesRequest } from './anthropic/schema.ts'
import { checkBy } from './check.ts'
import { chatRequest } from './openai/chat-schema.ts'

const checks = { chat: checkBy(chatRequest), messages: checkBy(messagesRequest) }
const plain = { model: 'm', max_tokens: 5, messages: [{ role: 'user', content: 'Hi' }] }

/** The error message for these fields, given as JSON text. */
function complaint(protocol: keyof typeof checks, fields: string): string {
  const written = parseBody(fields, { depthMax: 64, keysMax: 100 }) as JsonObject
  try {
    checks[protocol]({ ...plain, ...written }, written)
  } catch (thrown) {
    if (thrown instanceof GatewayError) return `${thrown.details.code} ${thrown.message}`
    throw thrown
  }
  return 'taken'
}

const user = (content: string) => `{"messages":[{"role":"user","content":${content}}]}`

describe('a value that the schema does not accept', () => {
  test.each([
    ['{"tool_choice":7}', "invalid_type Invalid 'tool_choice': expected string or object, received number."],
    [
      '{"tool_choice":{"type":"odd"}}',
      "invalid_value Invalid 'tool_choice.type': expected one of 'function', 'custom' or 'allowed_tools'.",
    ],
    [
      '{"tool_choice":{"type":"allowed_tools"}}',
      "missing_required_parameter Missing required parameter: 'tool_choice.allowed_tools'.",
    ],
    ['{"stop":7}', "invalid_type Invalid 'stop': expected string or array, received number."],
    ['{"stop":["a",3]}', "invalid_type Invalid 'stop[1]': expected string, received number."],
    ['{"stop":["a","b","c","d","e"]}', "invalid_value Invalid 'stop': expected at most 4 items, received 5."],
    [user('7'), "invalid_type Invalid 'messages[0].content': expected string or array, received number."],
    [user('null'), "invalid_type Invalid 'messages[0].content': expected string or array, received null."],
    [user('[]'), "invalid_value Invalid 'messages[0].content': expected at least 1 item, received 0."],
    ['{"messages":[{"role":"user"}]}', "missing_required_parameter Missing required parameter: 'messages[0].content'."],
    [
      '{"messages":[{"role":"odd","content":"Hi"}]}',
      "invalid_value Invalid 'messages[0].role': expected one of 'developer', 'system', 'user', 'assistant', 'tool' or 'function'.",
    ],
    [
      '{"audio":{"voice":3,"format":"wav"}}',
      "invalid_type Invalid 'audio.voice': expected string or object, received number.",
    ],
    ['{"verbosity":"odd"}', "invalid_value Invalid 'verbosity': expected one of 'low', 'medium' or 'high'."],
    ['{"metadata":[]}', "invalid_type Invalid 'metadata': expected object, received array."],
    ['{"n":1.5}', "invalid_type Invalid 'n': expected integer, received number."],
    ['{"n":0}', "invalid_value Invalid 'n': expected at least 1, received 0."],
    ['{"temperature":2.5}', "invalid_value Invalid 'temperature': expected at most 2, received 2.5."],
    ['{"frequency_penalty":-3}', "invalid_value Invalid 'frequency_penalty': expected at least -2, received -3."],
    ['{"messages":[]}', "invalid_value Invalid 'messages': expected at least 1 item, received 0."],
    [
      `{"safety_identifier":"${'🙂'.repeat(129)}"}`,
      "invalid_value Invalid 'safety_identifier': expected at most 128 characters, received 129.",
    ],
  ])('the chat error for %s names the field and what is expected', (fields, said) => {
    expect(complaint('chat', fields)).toBe(said)
  })

  test.each([
    [user('7'), "invalid_type Invalid 'messages[0].content': expected string or array, received number."],
    [user('[3]'), "invalid_type Invalid 'messages[0].content[0]': expected object, received number."],
    [
      user('[{"type":"tool_result","tool_use_id":"a","content":3}]'),
      "invalid_type Invalid 'messages[0].content[0].content': expected string or array, received number.",
    ],
    [
      user('[{"type":"image","source":{"type":"odd"}}]'),
      "invalid_value Invalid 'messages[0].content[0].source.type': expected one of 'base64', 'url' or 'file'.",
    ],
    ['{"system":3}', "invalid_type Invalid 'system': expected string or array, received number."],
    ['{"system":[{"type":"odd"}]}', "invalid_value Invalid 'system[0].type': expected 'text'."],
    [
      '{"tool_choice":{"type":"odd"}}',
      "invalid_value Invalid 'tool_choice.type': expected one of 'auto', 'any', 'tool' or 'none'.",
    ],
  ])('the messages error for %s names the field and what is expected', (fields, said) => {
    expect(complaint('messages', fields)).toBe(said)
  })
})

describe('a number that a double cannot hold', () => {
  const large = 'too large: at most 9007199254740991 is taken.'
  test.each([
    ['chat', '{"seed":123456789012345678901}', `Invalid 'seed': ${large}`],
    ['chat', '{"seed":-123456789012345678901}', "Invalid 'seed': too small: at least -9007199254740991 is taken."],
    ['chat', '{"max_tokens":9007199254740993}', `Invalid 'max_tokens': ${large}`],
    ['chat', '{"seed":1.0000000000000000001}', "Invalid 'seed': it has more digits than a number can hold."],
    ['chat', '{"logit_bias":{"7":123456789012345678901}}', `Invalid 'logit_bias.7': ${large}`],
    ['messages', '{"max_tokens":123456789012345678901}', `Invalid 'max_tokens': ${large}`],
    ['messages', '{"top_k":123456789012345678901}', `Invalid 'top_k': ${large}`],
  ] as const)('a %s request with %s is refused for the size or the digits of the number', (protocol, fields, said) => {
    expect(complaint(protocol, fields)).toBe(`invalid_value ${said}`)
  })

  test.each([
    ['{"stop":123456789012345678901}', "invalid_type Invalid 'stop': expected string or array, received number."],
    ['{"logit_bias":1e400}', "invalid_type Invalid 'logit_bias': expected object, received number."],
    ['{"tools":[1e400]}', "invalid_type Invalid 'tools[0]': expected object, received number."],
    ['{"metadata":123456789012345678901}', "invalid_type Invalid 'metadata': expected object, received number."],
    [
      '{"tools":[{"type":"function","function":{"name":"f","parameters":1e400}}]}',
      "invalid_type Invalid 'tools[0].function.parameters': expected object, received number.",
    ],
    [
      '{"response_format":{"type":1e400}}',
      "invalid_value Invalid 'response_format.type': expected one of 'text', 'json_object' or 'json_schema'.",
    ],
  ])('a field that accepts no numbers reports the value in %s as a number', (fields, said) => {
    expect(complaint('chat', fields)).toBe(said)
  })

  test('the number passes where any value does', () => {
    expect(complaint('chat', '{"metadata":{"order":123456789012345678901},"odd":1e400}')).toBe('taken')
  })
})
