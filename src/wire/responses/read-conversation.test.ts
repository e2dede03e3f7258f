import { describe, expect, test } from 'bun:test'
import type { Json, JsonObject } from '../../base/json.ts'
import type { Conversation } from '../../capabilities/conversation.ts'
import { responsesChat } from './chat.ts'
import { seal } from './sealed.ts'
import { askOf } from './testing.ts'

const read = (body: JsonObject): Conversation => responsesChat.readConversation(askOf(body))
const turns = (...input: JsonObject[]) => read({ input }).turns
const user = { role: 'user', content: 'Hi' }
const hi = { role: 'user', blocks: [{ kind: 'text', text: 'Hi' }] }
const text = (said: string) => ({ kind: 'text', text: said })
const bytes = (mediaType: string, base64: string) => ({ kind: 'bytes', mediaType, base64 })
const fail = (item: JsonObject) => () => turns(user, item)
const functionTool = { type: 'function', name: 'f', parameters: { type: 'object' } }

test('the fields of a request are read into a conversation', () => {
  expect(
    read({
      instructions: 'Be brief.',
      input: 'Hi',
      max_output_tokens: 9,
      temperature: 0.5,
      top_p: 0.25,
      top_logprobs: 3,
      tools: [{ ...functionTool, description: 'F.', strict: true }],
      tool_choice: { type: 'function', name: 'f' },
      parallel_tool_calls: false,
      text: { format: { type: 'json_schema', name: 'n', schema: { type: 'object' }, strict: true }, verbosity: 'low' },
      reasoning: { effort: 'high', summary: 'auto' },
      user: 'me',
      prompt_cache_key: 'mine',
    }),
  ).toEqual({
    system: [{ kind: 'text', text: 'Be brief.' }],
    turns: [{ role: 'user', blocks: [{ kind: 'text', text: 'Hi' }] }],
    tools: [{ name: 'f', description: 'F.', schema: { type: 'object' }, isStrict: true }],
    hostedTools: [],
    toolChoice: { name: 'f' },
    parallelTools: false,
    outputTokensMax: 9,
    temperature: 0.5,
    topP: 0.25,
    logprobs: 3,
    stop: [],
    format: { kind: 'schema', name: 'n', schema: { type: 'object' }, isStrict: true },
    thinking: { effort: 'high', isShown: true },
    verbosity: 'low',
    user: 'me',
    cacheKey: 'mine',
  })
})

test('absent and null fields are absent from the conversation', () => {
  const least = { system: [], turns: [hi], tools: [], hostedTools: [], stop: [] }
  expect(read({})).toEqual(least as unknown as Conversation)
  const nothing = ['instructions', 'tools', 'tool_choice', 'text', 'reasoning', 'temperature', 'include', 'user']
  expect(read(Object.fromEntries(nothing.map((field) => [field, null])))).toEqual(least as unknown as Conversation)
  expect(read({ text: { format: { type: 'text' } } })).toEqual(least as unknown as Conversation)
  // Asking for a summary does not ask for reasoning.
  const summed = { ...least, showsOwnThinking: true }
  expect(read({ reasoning: { summary: 'auto' } })).toEqual(summed as unknown as Conversation)
  expect(read({ reasoning: { effort: 'low' } }).thinking).toEqual({ effort: 'low', isShown: false })
})

describe('input items', () => {
  test('leading instructions are set apart, and later ones never split a call from its result', () => {
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{"a":1}' }
    const result = { type: 'function_call_output', call_id: 'c', output: 'done' }
    const late = { type: 'message', role: 'developer', content: [{ type: 'input_text', text: 'Hurry.' }] }
    const { system, turns: read_ } = read({
      input: [{ role: 'system', content: 'One.' }, { ...late }, user, call, late, result, user],
    })
    expect(system).toEqual([
      { kind: 'text', text: 'One.' },
      { kind: 'text', text: 'Hurry.' },
    ])
    expect(read_).toEqual([
      hi,
      { role: 'assistant', blocks: [{ kind: 'tool-call', id: 'c', name: 'f', argumentsText: '{"a":1}' }] },
      {
        role: 'user',
        blocks: [{ kind: 'tool-result', callId: 'c', blocks: [text('done')], isError: false, at: 'input[5]' }],
      },
      { role: 'system', blocks: [text('Hurry.')] },
      hi,
    ] as unknown as Conversation['turns'])
  })

  test('the output items of an answer become one assistant turn', () => {
    const said = { type: 'message', id: 'msg_1', role: 'assistant', status: 'completed' }
    const output = [
      {
        type: 'reasoning',
        id: 'rs_1',
        summary: [],
        encrypted_content: seal({ kind: 'thought', text: 'Hm', signature: 's' }),
      },
      { type: 'reasoning', id: 'rs_2', summary: [], encrypted_content: seal({ kind: 'redacted', data: 'd' }) },
      {
        ...said,
        content: [
          { type: 'output_text', text: 'A', annotations: [] },
          { type: 'refusal', refusal: 'No.' },
        ],
      },
      { type: 'web_search_call', id: 'ws_1', status: 'completed', action: {} },
      { type: 'reasoning', id: 'rs_3', summary: [], encrypted_content: seal({ kind: 'call', signature: 'google:g' }) },
      { type: 'function_call', id: 'fc_1', call_id: 'c', name: 'f', arguments: '' },
      { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'AAAA', output_format: 'webp' },
    ]
    expect(turns(user, ...output)[1]).toEqual({
      role: 'assistant',
      blocks: [
        { kind: 'thinking', text: 'Hm', signature: 's' },
        { kind: 'thinking-redacted', data: 'd' },
        { kind: 'text', text: 'A' },
        { kind: 'refusal', text: 'No.' },
        { kind: 'tool-call', id: 'c', name: 'f', argumentsText: '{}', signature: 'google:g' },
        { kind: 'image', media: { kind: 'bytes', mediaType: 'image/webp', base64: 'AAAA' } },
      ],
    })
  })

  test('reasoning without our seal is read as the text of its summary', () => {
    const summary = [{ type: 'summary_text', text: 'I see.' }]
    const foreign = { type: 'reasoning', id: 'rs_1', summary, encrypted_content: 'gAAAAA' }
    const broken = { type: 'reasoning', id: 'rs_2', summary, encrypted_content: 'tpk_%%%' }
    const silent = { type: 'reasoning', id: 'rs_3', summary: [], encrypted_content: 'gAAAAA' }
    const thought = { kind: 'thinking', text: 'I see.' }
    expect(turns(user, foreign, broken, silent)[1]?.blocks).toMatchObject([thought, thought, { text: '' }])
  })

  test('images, files and audio are read with their place', () => {
    const content = [
      { type: 'input_image', image_url: 'data:image/PNG;base64,AAAA', detail: 'high' },
      { type: 'input_image', image_url: 'https://a.example/a.png' },
      { type: 'input_file', filename: 'a.pdf', file_data: 'data:application/pdf;base64,BBBB' },
      { type: 'input_file', file_data: 'CCCC' },
      { type: 'input_file', file_data: 'data:application/octet-stream;base64,JVBERi0x' },
      { type: 'input_file', file_url: 'https://a.example/a.pdf' },
      { type: 'input_audio', input_audio: { data: 'DDDD', format: 'wav' } },
      { type: 'input_text', text: '' },
    ]
    expect(turns({ role: 'user', content })[0]?.blocks).toEqual(
      [
        { kind: 'image', media: bytes('image/png', 'AAAA'), detail: 'high' },
        { kind: 'image', media: { kind: 'url', url: 'https://a.example/a.png' } },
        { kind: 'document', media: bytes('application/pdf', 'BBBB'), title: 'a.pdf' },
        { kind: 'document', media: bytes('application/pdf', 'CCCC') },
        { kind: 'document', media: bytes('application/pdf', 'JVBERi0x') },
        { kind: 'document', media: { kind: 'url', url: 'https://a.example/a.pdf' } },
        { kind: 'audio', media: bytes('audio/wav', 'DDDD') },
      ].map((block, index) => ({ ...block, at: `input[0].content[${index}]` })) as never,
    )
  })

  test('arguments that were cut off or hold a __proto__ key are kept as unparsed_arguments', () => {
    const call = { type: 'function_call', call_id: 'c', name: 'f', status: 'incomplete' }
    for (const [given, argumentsText] of [
      ['{"city":"Par', '{"unparsed_arguments":"{\\"city\\":\\"Par"}'],
      ['[]', '{"unparsed_arguments":"[]"}'],
      ['{"__proto__":0}', '{"unparsed_arguments":"{\\"__proto__\\":0}"}'],
      ['', '{}'],
      ['{ "id": 9007199254740993 }', '{ "id": 9007199254740993 }'],
    ] as const) {
      expect(turns(user, { ...call, arguments: given })[1]?.blocks).toEqual([
        { kind: 'tool-call', id: 'c', name: 'f', argumentsText },
      ])
    }
  })

  test('items with missing or invalid fields are refused', () => {
    expect(fail({ role: 'user', content: [{ type: 'input_image' }] })).toThrow("'input[1].content[0].image_url'")
    expect(fail({ role: 'user', content: [{ type: 'input_file' }] })).toThrow("'input[1].content[0].file_data'")
    const video = { type: 'input_image', image_url: 'data:video/mp4;base64,AAAA' }
    expect(fail({ role: 'user', content: [video] })).toThrow('not an image')
    expect(fail({ role: 'user', content: [{ type: 'output_text', text: 'x' }] })).toThrow("role 'user'")
    expect(fail({ role: 'assistant', content: [video] })).toThrow("role 'assistant'")
    expect(() => read({ input: [{ role: 'user', content: '' }] })).toThrow("'input': nothing is said")
  })
})

describe('tools', () => {
  const plain = { type: 'custom', name: 'patch', description: 'Changes.', format: { type: 'text' } }
  const inside = { type: 'namespace', name: 'n', description: 'N', tools: [functionTool, plain] }

  test('tool names include their namespace, and duplicate names are refused', () => {
    expect(read({ tools: [functionTool, inside] }).tools.map(({ name }) => name)).toEqual(['f', 'n__f', 'n__patch'])
    expect(() => read({ tools: [functionTool, functionTool] })).toThrow("two tools 'f'")
  })

  test('an empty namespace is none', () => {
    const call = { type: 'function_call', call_id: 'c', name: 'f', namespace: '', arguments: '{}' }
    const choice = { type: 'function', name: 'f', namespace: '' }
    const asked = read({ tools: [functionTool, inside], tool_choice: choice, input: [user, call] })
    expect([asked.toolChoice, asked.turns[1]?.blocks[0]]).toMatchObject([{ name: 'f' }, { name: 'f' }])
  })

  test('names that are too long with their namespace are shortened and stay distinct', () => {
    const name = 'n'.repeat(64)
    const tools = [{ ...inside, name, tools: [functionTool, { ...functionTool, name: 'g' }] }]
    const call = { type: 'function_call', call_id: 'c', name: 'g', namespace: name, arguments: '{}' }
    const output = { type: 'function_call_output', call_id: 'c', output: 'done' }
    const choice = { type: 'function', name: 'g', namespace: name }
    const asked = read({ tools, tool_choice: choice, input: [user, call, output] })
    const [f, g] = asked.tools.map((tool) => tool.name)
    expect([f, g]).toEqual([
      expect.stringMatching(/^n{55}_[0-9a-f]{8}$/) as string,
      expect.stringMatching(/^n{55}_[0-9a-f]{8}$/) as string,
    ])
    expect(f).not.toBe(g)
    expect(asked.toolChoice).toEqual({ name: g as string })
    expect(asked.turns[1]?.blocks[0]).toMatchObject({ name: g as string })
  })

  test('a plain-text tool takes an object, and its grammar is put into the description', () => {
    const format = { type: 'grammar', syntax: 'lark', definition: 'start: "a"' }
    const [tool] = read({ tools: [{ ...plain, format }] }).tools
    expect(tool?.schema).toMatchObject({ required: ['input'], properties: { input: { type: 'string' } } })
    expect(tool?.description).toBe('Changes.\n\nThe input must follow this lark grammar:\nstart: "a"')
    const call = { type: 'custom_tool_call', call_id: 'c', name: 'patch', input: 'a "b"' }
    const output = { type: 'custom_tool_call_output', call_id: 'c', output: 'done' }
    expect(turns(user, call, output)[1]?.blocks[0]).toMatchObject({ argumentsText: '{"input":"a \\"b\\""}' })
  })

  test('tools can be added later by a developer or by a client’s tool search', () => {
    const search = { type: 'tool_search', execution: 'client', description: 'Finds.', parameters: { type: 'object' } }
    const input = [
      { type: 'additional_tools', role: 'developer', tools: [inside] },
      user,
      { type: 'tool_search_call', call_id: 'c', arguments: { query: 'q' }, execution: 'client' },
      { type: 'tool_search_output', call_id: 'c', tools: [inside, functionTool], execution: 'client' },
    ]
    const { tools, turns: said } = read({ tools: [search], input })
    expect(tools.map(({ name }) => name)).toEqual(['tool_search', 'n__f', 'n__patch', 'f'])
    expect(said[1]?.blocks).toEqual([
      { kind: 'tool-call', id: 'c', name: 'tool_search', argumentsText: '{"query":"q"}' },
    ] as never)
    expect(JSON.stringify(said[2]?.blocks)).toContain('can be called now: n__f, n__patch, f.')
  })

  test('tool_choice selects or limits the tools, and unknown names are refused', () => {
    const tools = [functionTool, { ...functionTool, name: 'g' }, inside]
    const chosen = (choice: JsonObject | string) => {
      const { toolChoice, tools: left } = read({ tools, tool_choice: choice })
      return { toolChoice, left: left.map(({ name }) => name) }
    }
    const all = ['f', 'g', 'n__f', 'n__patch']
    expect(chosen('required')).toEqual({ toolChoice: 'required', left: all })
    expect(chosen({ type: 'function', name: 'g' })).toEqual({ toolChoice: { name: 'g' }, left: all })
    expect(chosen({ type: 'custom', name: 'patch' }).toolChoice).toEqual({ name: 'n__patch' })
    expect(chosen({ type: 'function', name: 'f', namespace: 'n' }).toolChoice).toEqual({ name: 'n__f' })
    const some = { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'function', name: 'g' }] }
    expect(chosen(some)).toEqual({ toolChoice: 'auto', left: ['g'] })
    expect(() => chosen({ type: 'function', name: 'h' })).toThrow("'h' is not among the tools")
    const none = { ...some, tools: [{ type: 'function', name: 'h' }] }
    expect(() => chosen(none)).toThrow("'tool_choice.tools[0].name'")
    expect(() => chosen({ ...some, tools: [] })).toThrow('it names no tool')
  })

  test('tools of one name are told apart by namespace and type, and an ambiguous name is refused', () => {
    const find = { ...functionTool, name: 'find' }
    const space = (name: string) => ({ type: 'namespace', name, description: '', tools: [find] })
    const tools = [space('a'), space('b'), inside]
    const chosen = (choice: JsonObject) => read({ tools, tool_choice: choice })
    const allowing = (tool: JsonObject) => chosen({ type: 'allowed_tools', mode: 'required', tools: [tool] })
    const inB = { type: 'function', name: 'find', namespace: 'b' }
    expect(allowing(inB).tools.map(({ name }) => name)).toEqual(['b__find'])
    expect(chosen(inB).toolChoice).toEqual({ name: 'b__find' })
    const bare = { type: 'function', name: 'find' }
    expect(() => chosen(bare)).toThrow("'tool_choice.name': 'find' is in the namespaces 'a' and 'b'")
    expect(() => allowing(bare)).toThrow("'tool_choice.tools[0].name': 'find' is in the namespaces 'a' and 'b'")
    expect(() => allowing({ ...inB, namespace: 'c' })).toThrow("in the namespace 'c'")
    expect(() => chosen({ type: 'custom', name: 'f' })).toThrow("'f' is not among the tools of type 'custom'")
    expect(() => allowing({ type: 'function', name: 'patch' })).toThrow('not among the tools')
    // A bare name prefers the tool outside of all namespaces.
    const whole = read({ tools: [...tools, find], tool_choice: bare })
    expect(whole.toolChoice).toEqual({ name: 'find' })
    const search = { type: 'tool_search', execution: 'client' }
    const few = { type: 'allowed_tools', mode: 'auto', tools: [{ type: 'tool_search' }] }
    expect(read({ tools: [find, search], tool_choice: few }).tools.map(({ name }) => name)).toEqual(['tool_search'])
  })

  test('web search is a hosted tool only with external access and where the choice allows it', () => {
    expect(read({ tools: [{ type: 'web_search' }], max_tool_calls: 3 }).hostedTools).toEqual([
      { kind: 'web-search', usesMax: 3 },
    ])
    expect(read({ tools: [{ type: 'web_search', external_web_access: false }] }).hostedTools).toEqual([])
    const tools = [functionTool, { type: 'web_search' }]
    const allowing = (type: string) => {
      const choice = { type: 'allowed_tools', mode: 'auto', tools: [{ type, name: 'f' }] }
      return read({ tools, tool_choice: choice }).hostedTools
    }
    expect(allowing('function')).toEqual([])
    expect(allowing('web_search')).toHaveLength(1)
  })
})

const reasoning = (encrypted: string) => ({ type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: encrypted })

test('only reasoning in an unknown encoding is read as OpenAI’s own', () => {
  const signature = 'openai:gAAAAA'
  expect(turns(user, reasoning('gAAAAA'))[1]?.blocks).toEqual([{ kind: 'thinking', text: '', signature }])
  expect(turns(user, reasoning(''), reasoning('tpk_%%%'))).toEqual([hi] as never)
})

const labelled = (words: string) => ({ type: 'encrypted_content', encrypted_content: words })

function toldByAgent(content: Json): unknown[] {
  const message = { type: 'agent_message', id: 'amsg_1', author: '/root', recipient: '/root/worker', content }
  return turns(message, user).flatMap(({ blocks }) => blocks.map((block) => block.kind === 'text' && block.text))
}

test('a message between agents is read as the user’s, with all words but those that OpenAI encrypted', () => {
  const head = { type: 'input_text', text: 'Message Type: NEW_TASK\nPayload:\n' }
  expect(toldByAgent([head, labelled('List the files.')])).toEqual([`${head.text}List the files.`, 'Hi'])
  expect(toldByAgent([head, labelled(`gAAAA${'x'.repeat(80)}==`)])).toEqual([head.text, 'Hi'])
  expect(toldByAgent('Done.')).toEqual(['Done.', 'Hi'])
  expect(toldByAgent(null)).toEqual(['Hi'])
})
