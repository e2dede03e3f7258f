import { expect, test } from 'bun:test'
import { makeOwnLinks } from './own-links.ts'

const simulators = 'http://127.0.0.1:4010'
const publicUrl = 'http://127.0.0.1:8080'
const isOwn = makeOwnLinks({ simulators, publicUrl })

test.each([
  `${simulators}/dashscope/results/1-8x8.png?Expires=1&Signature=a%2Fb`,
  `${simulators}/ark/video-results/t_8x8_3.mp4?Expires=1`,
  `${publicUrl}/artifacts/art_1.png?expires=1&signature=a`,
])('%s is a link of ours', (link) => {
  expect(isOwn(link)).toBe(true)
})

test.each([
  `${simulators}/__calls`,
  `${simulators}/dashscope/api/v1/tasks/1`,
  `${simulators}/dashscope/results/`,
  `${simulators}/dashscope/results/../../__calls`,
  `${simulators}/dashscope/results/%2e%2e/%2e%2e/__calls`,
  `${simulators}/dashscope/results\\..\\..\\__calls`,
  `${simulators}/dashscope/results/a/b`,
  `${simulators}.example.com/dashscope/results/1.png`,
  `${simulators}0/dashscope/results/1.png`,
  `${simulators}@example.com/dashscope/results/1.png`,
  `http://x@127.0.0.1:4010/dashscope/results/1.png`,
  'http://127.1:4010/dashscope/results/1.png',
  'http://localhost:4010/dashscope/results/1.png',
  'HTTP://127.0.0.1:4010/dashscope/results/1.png',
  'https://127.0.0.1:4010/dashscope/results/1.png',
  'http://127.0.0.1:4011/dashscope/results/1.png',
  `${publicUrl}/v1/models`,
  `${publicUrl}/artifacts/../v1/models`,
  `${publicUrl}/artifacts/art_1.png/b`,
  `${publicUrl}/dashscope/results/1.png`,
  `${simulators}/artifacts/art_1.png`,
  'https://example.com/artifacts/art_1.png',
  '',
])('%s is not a link of ours', (link) => {
  expect(isOwn(link)).toBe(false)
})

test('links to artifacts are ours only below the path of the public address', () => {
  const below = makeOwnLinks({ simulators, publicUrl: 'https://example.com/ai' })
  expect(below('https://example.com/ai/artifacts/art_1.png')).toBe(true)
  expect(below('https://example.com/artifacts/art_1.png')).toBe(false)
  // A path beside it, of the same length.
  expect(below('https://example.com/ai/../it/artifacts/art_1.png')).toBe(false)
})

test('no link is ours when there are no simulators', () => {
  const none = makeOwnLinks({ simulators: undefined, publicUrl })
  expect(none(`${publicUrl}/artifacts/art_1.png`)).toBe(false)
  expect(none(`${simulators}/dashscope/results/1-8x8.png`)).toBe(false)
})
