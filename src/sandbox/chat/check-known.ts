import { type Fields, fieldsIn, itemsIn } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import { unknownField } from './errors.ts'

type Strictness = { readonly body: readonly string[]; readonly message: readonly string[] }

const hints = ['modalities', 'prompt_cache_options', 'prompt_cache_retention', 'safety_identifier', 'verbosity']
const ofAnswers = ['annotations', 'audio', 'images', 'reasoning_details', 'refusal']
const ofThinking = [...ofAnswers, 'reasoning_content']

/** What these vendors refuse of the protocol's fields, even as a null; other vendors ignore what they do not know. */
const refusedBy: Readonly<Record<string, Strictness>> = {
  cerebras: { body: [...hints, 'metadata', 'store'], message: ofThinking },
  fireworks: { body: [...hints, 'store'], message: [...ofAnswers, 'reasoning'] },
  groq: { body: [...hints, 'metadata', 'prompt_cache_key'], message: ofThinking },
  mistral: {
    body: [...hints, 'logit_bias', 'max_completion_tokens', 'seed', 'store', 'stream_options', 'user'],
    message: [...ofThinking, 'name', 'reasoning'],
  },
  nvidia: { body: [...hints, 'metadata', 'prompt_cache_key', 'store', 'user'], message: [] },
  xai: { body: ['frequency_penalty', 'presence_penalty', 'stop'], message: [] },
}

/** Refuses a field that the vendor does not know, in the request and in its messages. */
export function checkKnown(body: Fields, { vendor }: SandboxModel): void {
  const refused = refusedBy[vendor]
  if (refused === undefined) return
  const field = refused.body.find((name) => body[name] !== undefined)
  if (field !== undefined) throw unknownField(field)
  for (const [index, message] of itemsIn(body.messages).entries()) {
    const given = fieldsIn(message)
    // The name of a tool may stand beside its result.
    const other = refused.message.find(
      (name) => given[name] !== undefined && !(name === 'name' && given.role === 'tool'),
    )
    if (other !== undefined) throw unknownField(`messages[${index}].${other}`)
  }
}
