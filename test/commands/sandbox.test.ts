import { afterEach, beforeEach, expect, test } from 'bun:test'
import { makeCli, type Cli } from '../support/cli.ts'

let cli: Cli
beforeEach(() => {
  cli = makeCli()
})
afterEach(() => cli.close())

test('turnpike sandbox answers at the addresses that it prints, and exits with 0 on SIGTERM', async () => {
  const child = cli.start(['sandbox', '--json', '--port', '0'], {})
  const reader = child.stdout.getReader()
  let text = ''
  while (!text.endsWith('}\n')) {
    const { value, done } = await reader.read()
    if (done) break // what it has printed is then not JSON
    text += new TextDecoder().decode(value)
  }
  const { vendors } = JSON.parse(text) as { vendors: { vendor: string; base_url: string; models: number }[] }
  const openai = vendors.find(({ vendor }) => vendor === 'openai')
  const answer = await fetch(`${openai?.base_url}/chat/completions`, {
    method: 'POST',
    headers: { authorization: 'Bearer any' },
    body: JSON.stringify({ model: 'gpt-4o-mini', messages: [{ role: 'user', content: 'Hello!' }] }),
  })
  expect(answer.status).toBe(200)
  child.kill('SIGTERM')
  expect(await child.exited).toBe(0)
})
