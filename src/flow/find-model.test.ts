import { expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import type { Model } from '../catalogue/model.ts'
import { findModel } from './find-model.ts'

// Only the names of the models are read.
const models = new Map(
  [
    'gpt-4o-mini',
    'meta-llama-llama-3.3-70b',
    'claude-sonnet-4-5',
    'qwen-qwen3',
    'qwen3',
    'secret-model',
    'secret-vision',
    'decret-vision',
  ].map((id) => [id, {} as Model]),
)
const offered = Object.assign(models, { unpriced: new Set(['claude-opus-9', 'secret-novelty']) })
const user = { mayUse: (id: string) => !id.startsWith('secret') }

function messageFor(id: string): string {
  try {
    findModel(offered, user, id)
  } catch (thrown) {
    if (thrown instanceof GatewayError) return thrown.message
    throw thrown
  }
  throw new Error('it was found')
}

test.each([
  ['GPT-4o-Mini', 'gpt-4o-mini'],
  ['openai/gpt-4o-mini', 'gpt-4o-mini'],
  ['OpenAI/GPT-4o-mini', 'gpt-4o-mini'],
  ['openai:gpt-4o-mini', 'gpt-4o-mini'],
  ['openrouter/openai/gpt-4o-mini', 'gpt-4o-mini'],
  ['gpt_4o_mini', 'gpt-4o-mini'],
  ['meta-llama/Llama-3.3-70B', 'meta-llama-llama-3.3-70b'],
  ['together/meta-llama/Llama-3.3-70B', 'meta-llama-llama-3.3-70b'],
  ['claude/sonnet/4-5', 'claude-sonnet-4-5'],
  ['gpt4o-mini', 'gpt-4o-mini'],
  ['openai/GPT4o-mini', 'gpt-4o-mini'],
  ['gpt-4o-mnii', 'gpt-4o-mini'],
  ['claude-sonet-4.5', 'claude-sonnet-4-5'],
  ['qwen-3', 'qwen3'],
  // Nearer still is a model that the key may not use.
  ['secret-vison', 'decret-vision'],
])('the unknown model %s is refused with the suggestion %s', (id, meant) => {
  expect(messageFor(id)).toBe(
    `The model \`${id}\` does not exist or you do not have access to it. Did you mean \`${meant}\`?`,
  )
})

test('all likely models are suggested when there are several', () => {
  expect(messageFor('Qwen/Qwen3')).toEndWith('Did you mean `qwen3` or `qwen-qwen3`?')
})

test.each([
  'gpt-4',
  'gpt-5o-mini',
  'claude-sonnet-4-6',
  'openai/',
  '/',
  '',
  ':',
  'gpt-4o-mini-2',
  `openai/${'x'.repeat(1_000)}gpt-4o-mini`,
])('no model is suggested for %p', (id) => {
  expect(messageFor(id)).not.toContain('mean')
})

test('a model that only lacks a price is refused with a message that says so', () => {
  expect(messageFor('claude-opus-9')).toBe(
    'The model `claude-opus-9` has no price here, and is not sold until the operator sets one.',
  )
})

test.each(['secret-model', 'secret-modle', 'secret-novelty', 'Secret-Model', 'openai/secret-model', 'secret/model'])(
  'the refusal of %s does not reveal a model that the key may not use',
  (id) => {
    const other = id.replace(/secret/i, 'absent')
    expect(messageFor(id).replaceAll(id, '')).toBe(messageFor(other).replaceAll(other, ''))
  },
)
