import { expect, test } from 'bun:test'
import { ourModelId } from './discover.ts'

test.each([
  ['llama3.1:8b', 'llama3.1-8b'],
  ['org/Model_Name', 'org-model-name'],
  ['My Model.gguf', 'my-model.gguf'],
  ['C:\\models\\a+b@q4', 'c-models-a-b-q4'],
  ['/models/x.gguf', 'models-x.gguf'],
  ['', undefined],
  ['///', undefined],
  ['模型', undefined],
  ['x'.repeat(500), undefined],
])('a local server’s %j is %j here', (upstreamModel, id) => {
  expect(ourModelId(upstreamModel)).toBe(id)
})
