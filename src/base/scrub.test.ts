import { expect, test } from 'bun:test'
import { scrub } from './scrub.ts'

test.each([
  ['a customer key', 'sk-abcdefgh12', '[redacted]'],
  ['an operator key', 'adm-abcdefgh12', '[redacted]'],
  ['a metrics key', 'mtr-abcdefgh12', '[redacted]'],
  ['a webhook secret', 'whsec_ab+/cdefgh==', '[redacted]'],
  ['a password in a URL', 'postgres://turnpike:pass-word@host/db', 'postgres://turnpike:[redacted]@host/db'],
  ['a word that only resembles a key', 'task-force risk-abcdefgh12', 'task-force risk-abcdefgh12'],
])('secrets and nothing else are redacted: %s', (_name, text, shown) => {
  expect(scrub(`before ${text} behind`)).toBe(`before ${shown} behind`)
})
