import { expect, test } from 'bun:test'
import fixture from './fixtures/google.json' with { type: 'json' }
import { google } from './google.ts'

test('the recorded answer is read with its thinking and usage', () => {
  const reply = google.chat?.readAnswer(Buffer.from(JSON.stringify(fixture.answer)))
  expect(reply?.usage).toMatchObject(fixture.counts)
  expect(reply?.choices).toEqual([
    {
      blocks: [
        { kind: 'thinking', text: 'A greeting.' },
        { kind: 'text', text: fixture.text },
      ],
      finish: 'stop',
    },
  ])
})
