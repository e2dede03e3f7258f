import { expect, test } from 'bun:test'
import { asGatewayError } from '../base/errors.ts'
import { newRequestId } from '../base/ids.ts'
import { silentLog, type LogFields } from '../base/log.ts'
import { logFault } from './log-fault.ts'

/** What the log says of a bug that was thrown. */
function causeOf(thrown: unknown): LogFields['cause'] {
  let fields: LogFields = {}
  const log = { ...silentLog, error: (given: LogFields) => void (fields = given) }
  logFault(log, newRequestId(), asGatewayError(thrown))
  return fields['cause']
}

test('a bug is logged with its stack, or with its reason where it has none', () => {
  const bug = new TypeError('the cat is out')
  expect(causeOf(bug)).toBe(bug.stack)
  expect(bug.stack).toContain('log-fault.test.ts')
  delete bug.stack
  expect(causeOf(bug)).toBe('TypeError: the cat is out')
})
