/** What goes over the wire in the bench: of the size and shape that real traffic has, and the same on every run. */

export const benchKey = 'sk-bench-0123456789abcdefghijklmnopqrstuvwxyz'
export const vendorKey = 'sk-vendor-0123456789abcdefghijklmnopqrstuvw'
export const benchModel = 'gpt-4o-mini'
// The vendor answers with a dated id although the plain one was asked for, so every event has its model replaced.
const answeredModel = 'gpt-4o-mini-2024-07-18'

const instructions =
  'You are the assistant of a small travel agency. Answer in the language of the customer, in at most four sentences. ' +
  'Name prices only when the customer asks for them, never promise availability, and offer to connect the customer ' +
  'with a colleague whenever a booking has to be changed or a refund is wanted. Dates are written out in words.'

const conversation = [
  { role: 'system', content: instructions },
  {
    role: 'user',
    content:
      'We are a family of four and would like to spend a week by the sea in early autumn. Where is it still warm?',
  },
  {
    role: 'assistant',
    content:
      'In September and early October the southern coasts are still warm enough to swim: think of Crete, the Algarve or ' +
      'the south of Sicily. Crete has the warmest water of the three, the Algarve the widest beaches, and Sicily the ' +
      'most to see on a rainy day. Would you rather have a hotel or a house of your own?',
  },
  {
    role: 'user',
    content:
      'A house, please, and not too far from an airport: the youngest one does not like long drives. Which of them?',
  },
]

/** About 1.4 KB, as a short conversation is. */
export const plainBody = JSON.stringify({
  model: benchModel,
  messages: conversation,
  temperature: 0.7,
  max_tokens: 512,
  user: 'customer-4711',
})

/** Asks for usage, so that every system relays the same number of events. */
export const streamBody = JSON.stringify({
  model: benchModel,
  messages: conversation,
  temperature: 0.7,
  max_tokens: 512,
  user: 'customer-4711',
  stream: true,
  stream_options: { include_usage: true },
})

const usage = {
  prompt_tokens: 241,
  completion_tokens: 200,
  total_tokens: 441,
  prompt_tokens_details: { cached_tokens: 0, audio_tokens: 0 },
  completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0 },
}

/** About 700 bytes. */
export const plainAnswer = JSON.stringify({
  id: 'chatcmpl-BenchBenchBenchBenchBenchBench',
  object: 'chat.completion',
  created: 1_760_000_000,
  model: answeredModel,
  choices: [
    {
      index: 0,
      message: {
        role: 'assistant',
        content: 'Crete: many houses lie within half an hour of the airport of Chania, and the sea stays warm longest.',
        refusal: null,
        annotations: [],
      },
      logprobs: null,
      finish_reason: 'stop',
    },
  ],
  usage,
  service_tier: 'default',
  system_fingerprint: 'fp_0123456789',
})

/** The events of one stream as the vendor writes them: role, deltas, finish reason, usage, end. */
export function streamEvents(chunks: number): string[] {
  return [
    event(choice({ role: 'assistant', content: '', refusal: null }, null), null),
    ...Array.from({ length: chunks }, (_, i) => event(choice({ content: ` word${i % 10}` }, null), null)),
    event(choice({}, 'stop'), null),
    event([], usage),
    'data: [DONE]\n\n',
  ]
}

function event(choices: readonly unknown[], counted: typeof usage | null): string {
  const chunk = {
    id: 'chatcmpl-BenchBenchBenchBenchBenchBench',
    object: 'chat.completion.chunk',
    created: 1_760_000_000,
    model: answeredModel,
    service_tier: 'default',
    system_fingerprint: 'fp_0123456789',
    choices,
    usage: counted,
    obfuscation: 'a8Xk2',
  }
  return `data: ${JSON.stringify(chunk)}\n\n`
}

function choice(delta: object, finish: string | null) {
  return [{ index: 0, delta, logprobs: null, finish_reason: finish }]
}
