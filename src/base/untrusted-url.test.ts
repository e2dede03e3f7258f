import { expect, test } from 'bun:test'
import { readTarget, strictPolicy } from './untrusted-url.ts'

test.each([
  ['https://site.test/', 443],
  ['http://site.test/', 80],
  ['https://site.test:80/', 80],
  ['http://site.test:443/', 443],
])('%s is at port %d', (url, port) => {
  expect(readTarget(url, { ...strictPolicy, schemes: 'https-and-http' }).port).toBe(port)
})
