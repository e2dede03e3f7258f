import { expect, test } from 'bun:test'
import { readForm } from './read-form.ts'

type Entry = readonly [name: string, value: string | File]

const image = (bytes: string) => new File([bytes], 'a.png', { type: 'image/png' })

/** What a request with an Idempotency-Key is compared by. */
async function comparedBy(...entries: readonly Entry[]): Promise<string> {
  const form = new FormData()
  for (const [name, value] of entries) form.append(name, value)
  const { canonicalBytes } = await readForm(new Request('http://here/', { method: 'POST', body: form }), 10_000)
  return Buffer.from(canonicalBytes).toString()
}

test('two forms are the same request if their fields are in another order, and not if their images are', async () => {
  const prompt: Entry = ['prompt', 'a']
  const model: Entry = ['model', 'm']
  const first: Entry = ['image[]', image('1')]
  const second: Entry = ['image[]', image('2')]
  const asked = await comparedBy(prompt, model, first, second)
  expect(await comparedBy(model, first, prompt, second)).toBe(asked)
  expect(await comparedBy(prompt, model, second, first)).not.toBe(asked)
  expect(await comparedBy(prompt, model, first, ['mask', image('2')])).not.toBe(asked)
})
