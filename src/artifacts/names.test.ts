import { expect, test } from 'bun:test'
import { mediaTypeOf, newArtifactId } from './names.ts'

test.each([
  ['image/png', 'png', 'image/png'],
  ['image/jpg', 'jpg', 'image/jpeg'],
  ['Image/WebP; charset=x', 'webp', 'image/webp'],
  [' audio/mp3 ;rate=1', 'mp3', 'audio/mpeg'],
  ['audio/flac', 'flac', 'audio/flac'],
  ['video/mp4', 'mp4', 'video/mp4'],
  ['video/quicktime', 'mov', 'video/quicktime'],
  ['video/webm', 'webm', 'video/webm'],
  // Types that a browser could run become plain bytes to download.
  ['text/html', 'bin', 'application/octet-stream'],
  ['image/svg+xml', 'bin', 'application/octet-stream'],
  ['', 'bin', 'application/octet-stream'],
])('%j is kept as .%s and served as %s', (given, ending, served) => {
  const id = newArtifactId(given)
  expect(id).toEndWith(`.${ending}`)
  expect(mediaTypeOf(id)).toBe(served)
})

const name = `art_${'0'.repeat(32)}`

test.each([
  '',
  name,
  `${name}.html`,
  `${name}.png/../x`,
  `${name}.png\n`,
  `../${name}.png`,
  `x${name}.png`,
  `${name.slice(0, -1)}.png`,
  `${name.toUpperCase()}.png`,
])('%j is not an artifact id', (id) => {
  expect(mediaTypeOf(id)).toBeUndefined()
})
