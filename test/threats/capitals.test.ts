import { expect, test } from 'bun:test'
import { gatewayForTests } from '../support/gateway.ts'
import { refusedForFree } from '../support/refused.ts'
import { says } from '../support/streams.ts'

// M-06, C-03. A server written in Go reads the names of fields in any case and takes the last. Unknown fields pass on,
// so a second spelling of a field that was checked and priced would be carried out in its place.

const gateway = gatewayForTests()

const message = { model: 'claude-opus-5', max_tokens: 10, messages: [{ role: 'user', content: 'Hi' }] }
const video = { model: 'wan2.6-t2v', duration: 5, input: { prompt: 'A fox.' } }

const link = { type: 'image_url', image_url: { url: 'https://10.0.0.1/a.png' } }
const part = 'messages[0].content[0]'
const said = (message: object) => ({ model: 'gpt-4o-mini', messages: [{ role: 'user', ...message }] })
const twoLinks = { url: 'data:image/png;base64,AA', URL: 'https://10.0.0.1/a.png' }
const tool = { type: 'function', function: { name: 'f' } }
const source = { type: 'url', url: 'https://example.com/a.png', URL: 'https://10.0.0.1/a.png' }
const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: [{ type: 'image', source }] }
const media = [{ type: 'reference_image', url: 'https://example.com/a.png', Type: 'reference_video' }]

test.each<[path: string, body: Record<string, unknown>, param: string, meant: string]>([
  ['chat/completions', says('Hi', { n: 1, N: 8 }), 'N', 'n'],
  ['chat/completions', says('Hi', { Model: 'gpt-5-pro' }), 'Model', 'model'],
  ['chat/completions', says('Hi', { max_tokens: 1, MAX_TOKENS: 9999 }), 'MAX_TOKENS', 'max_tokens'],
  ['chat/completions', says('Hi', { Service_Tier: 'priority' }), 'Service_Tier', 'service_tier'],
  ['chat/completions', says('Hi', { Web_Search_Options: {} }), 'Web_Search_Options', 'web_search_options'],
  ['chat/completions', says('Hi', { Provider: { only: ['x'] } }), 'Provider', 'provider'],
  ['chat/completions', says('Hi', { ſtream: true }), 'ſtream', 'stream'],
  ['chat/completions', says('Hi', { max_toKens: 9999 }), 'max_to\u212Aens', 'max_tokens'],
  [
    'responses',
    { model: 'gpt-4o-mini', input: 'Hi', Max_Output_Tokens: 9999 },
    'Max_Output_Tokens',
    'max_output_tokens',
  ],
  ['responses', { model: 'gpt-4o-mini', input: 'Hi', Background: true }, 'Background', 'background'],
  ['chat/completions', said({ content: 'Hi', Content: [link] }), 'messages[0].Content', 'messages[0].content'],
  ['chat/completions', said({ content: [{ type: 'text', text: 'Hi', Type: 'file' }] }), `${part}.Type`, `${part}.type`],
  [
    'chat/completions',
    said({ content: [{ type: 'image_url', image_url: twoLinks }] }),
    `${part}.image_url.URL`,
    `${part}.image_url.url`,
  ],
  ['chat/completions', says('Hi', { tools: [{ ...tool, Type: 'web_search' }] }), 'tools[0].Type', 'tools[0].type'],
  [
    'responses',
    {
      model: 'gpt-5',
      input: [{ role: 'user', content: [{ type: 'input_text', text: 'Hi', Image_URL: 'https://x' }] }],
    },
    'input[0].content[0].Image_URL',
    'input[0].content[0].image_url',
  ],
  [
    'responses',
    { model: 'gpt-5', input: 'Hi', tools: [{ type: 'function', name: 'f', TYPE: 'code_interpreter' }] },
    'tools[0].TYPE',
    'tools[0].type',
  ],
  [
    'messages',
    { ...message, messages: [{ role: 'user', content: [result] }] },
    `${part}.content[0].source.URL`,
    `${part}.content[0].source.url`,
  ],
  [
    'messages',
    { ...message, tools: [{ name: 'f', input_schema: { type: 'object' }, Type: 'web_search_20250305' }] },
    'tools[0].Type',
    'tools[0].type',
  ],
  ['messages', { ...message, MAX_TOKENS: 9999 }, 'MAX_TOKENS', 'max_tokens'],
  ['messages', { ...message, Fallbacks: [] }, 'Fallbacks', 'fallbacks'],
  ['messages', { ...message, Container: 'container_1' }, 'Container', 'container'],
  ['embeddings', { model: 'text-embedding-3-small', input: 'Hi', Input: ['Hi', 'Ho'] }, 'Input', 'input'],
  ['embeddings', { model: 'text-embedding-3-small', input: 'Hi', Fallbacks: ['x'] }, 'Fallbacks', 'fallbacks'],
  ['audio/speech', { model: 'gpt-4o-mini-tts', input: 'Hi', INPUT: 'A longer text.' }, 'INPUT', 'input'],
  ['images/generations', { model: 'gpt-image-1', prompt: 'A fox.', N: 4 }, 'N', 'n'],
  ['videos/generations', { ...video, parameters: { Duration: 15 } }, 'parameters.Duration', 'parameters.duration'],
  [
    'videos/generations',
    { model: 'wan2.7-r2v', duration: 5, input: { prompt: 'A fox.', media } },
    'input.media[0].Type',
    'input.media[0].type',
  ],
  [
    'videos/generations',
    { ...video, parameters: { SampleCount: 4 } },
    'parameters.SampleCount',
    'parameters.sampleCount',
  ],
  [
    'videos/generations',
    { ...video, input: { prompt: 'A fox.', IMG_URL: 'https://x.test/' } },
    'input.IMG_URL',
    'input.img_url',
  ],
])('%s refuses the second spelling in %j', async (path, body, param, meant) => {
  const response = await refusedForFree(gateway, () => gateway.post(`/v1/${path}`, body))
  const { error } = (await response.json()) as { error: Record<string, unknown> }
  expect({ status: response.status, message: error['message'] }).toEqual({
    status: 400,
    message: `Unknown parameter: '${param}'. Did you mean '${meant}'?`,
  })
})

test('capital letters in a name that resembles no known field are passed on', async () => {
  const response = await gateway.post('/v1/chat/completions', says('Hi', { topK: 5, safeMode: true }))
  expect(response.status).toBe(200)
  expect((await gateway.calls()).at(-1)?.body).toMatchObject({ topK: 5, safeMode: true })
})

test.each([
  ['/v1/chat/completions', says('Hi', { providerOptions: { gateway: { models: ['x'] } } }), 'providerOptions.gateway'],
  ['/v1/embeddings', { model: 'text-embedding-3-small', input: 'Hi' }, 'fallbacks'],
  ['/v1/audio/speech', { model: 'gpt-4o-mini-tts', input: 'Hi' }, 'fallbacks'],
  ['/v1/images/generations', { model: 'gpt-image-1', prompt: 'A fox.' }, 'fallbacks'],
  ['/v1/responses', { model: 'gpt-5', input: 'Hi' }, 'models'],
  ['/v1/responses', { model: 'gpt-5', input: 'Hi' }, 'plugins'],
  ['/v1/messages', message, 'models'],
  ['/v1/messages', message, 'plugins'],
])(
  '%s refuses a field by which a relay would have another model answer, or search: %j with %s',
  async (where, body, field) => {
    const response = await refusedForFree(gateway, () => gateway.post(where, { ...body, [field]: [{ id: 'web' }] }))
    expect(response.status).toBe(400)
    expect(await response.text()).toContain(`'${field}' is not supported`)
  },
)

// LiteLLM lays the fields of this object over those of the body.
test.each([
  ['/v1/chat/completions', says('Hi'), 'model'],
  ['/v1/chat/completions', says('Hi'), 'service_tier'],
  ['/v1/chat/completions', says('Hi'), 'Max_Tokens'],
  ['/v1/chat/completions', says('Hi'), 'fallbacks'],
  ['/v1/embeddings', { model: 'text-embedding-3-small', input: 'Hi' }, 'model'],
  ['/v1/audio/speech', { model: 'gpt-4o-mini-tts', input: 'Hi' }, 'model'],
  ['/v1/images/generations', { model: 'gpt-image-1', prompt: 'A fox.' }, 'n'],
  ['/v1/responses', { model: 'gpt-5', input: 'Hi' }, 'fallbacks'],
  ['/v1/messages', message, 'model'],
])('%s refuses a field of the request in extra_body: %j with %s', async (where, body, field) => {
  const response = await refusedForFree(gateway, () => gateway.post(where, { ...body, extra_body: { [field]: 'x' } }))
  expect(response.status).toBe(400)
  expect(await response.text()).toContain(`'extra_body.${field}' is not supported`)
})

test('an extra_body without fields of the request is passed on', async () => {
  const extra = { google: { thinking_config: { include_thoughts: true } } }
  expect((await gateway.post('/v1/chat/completions', says('Hi', { extra_body: extra }))).status).toBe(200)
  expect((await gateway.calls()).at(-1)?.body).toMatchObject({ extra_body: extra })
})
