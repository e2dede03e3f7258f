import { expect, test } from 'bun:test'
import { scrub } from './scrub.ts'

test.each([
  ['a customer’s key', 'sk-abcdefgh12', '[redacted]'],
  ['an operator’s', 'adm-abcdefgh12', '[redacted]'],
  ['that of who reads the metrics', 'mtr-abcdefgh12', '[redacted]'],
  ['a webhook secret', 'whsec_ab+/cdefgh==', '[redacted]'],
  ['a password in an address', 'postgres://turnpike:pass-word@host/db', 'postgres://turnpike:[redacted]@host/db'],
  ['a name that only begins like one', 'task-force risk-abcdefgh12', 'task-force risk-abcdefgh12'],
])('secrets and nothing else are redacted: %s', (_name, text, shown) => {
  expect(scrub(`before ${text} behind`)).toBe(`before ${shown} behind`)
})
