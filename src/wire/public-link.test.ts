import { expect, test } from 'bun:test'
import { isPublicLink } from './public-link.ts'

test.each([
  'https://example.com/a.png',
  'https://a.b.example.co.uk:8443/a.png',
  'https://local.example.com/',
  'https://internal.io/',
  'https://8.8.8.8/a.png',
  'https://[2606:4700::1111]/a.png',
])('%s is accepted as a public link', (link) => {
  expect(isPublicLink(link, 'https')).toBe(true)
})

test.each([
  'https://localhost/a.png',
  'https://a.localhost/a.png',
  'https://intranet/a.png',
  'https://metadata/a.png',
  'https://metadata.google.internal/computeMetadata/v1/',
  'https://METADATA.GOOGLE.INTERNAL/',
  'https://printer.local/a.png',
  'https://nas.home.arpa/a.png',
  'https://wiki.corp/a.png',
  'https://router.lan/a.png',
  'https://box.localdomain/a.png',
  'https://metadata.google.internal./',
  'https://169.254.169.254/',
  'https://[::1]/',
  'http://example.com/a.png',
])('%s is not accepted as a public link', (link) => {
  expect(isPublicLink(link, 'https')).toBe(false)
})
