import { expect, test } from 'bun:test'
import { GatewayError } from '../base/errors.ts'
import { isAway, isUnavailable, isUniqueViolation, NotConnected, storeError } from './faults.ts'

const failed = (code: string, more: object = {}) => Object.assign(new Error('it failed'), { code }, more)

// What could not be written for one of these reasons is tried again; for another reason it is given up.
test.each([
  ['ECONNREFUSED', 'nothing listens'],
  ['ECONNRESET', 'the connection was lost'],
  ['ETIMEDOUT', 'the network does not answer'],
  ['EPIPE', 'the connection was closed'],
  ['ENOTFOUND', 'the name is unknown'],
  ['EAI_AGAIN', 'the name cannot be looked up'],
  ['ENOENT', 'the socket is missing'],
  ['08006', 'connection failure'],
  ['53100', 'the disk is full'],
  ['53300', 'too many connections'],
  ['57P01', 'the server is shut down'],
  ['57P03', 'the server is starting'],
  ['57014', 'the statement took too long'],
  ['55P03', 'the lock was not free'],
  ['25P03', 'the transaction was idle'],
  ['40P01', 'a deadlock'],
  ['40001', 'the transactions cannot be serialized'],
  ['25006', 'only reads are allowed'],
  ['58030', 'the disk failed'],
  ['SQLITE_BUSY', 'another process writes'],
  ['SQLITE_BUSY_SNAPSHOT', 'another process has written'],
  ['SQLITE_FULL', 'the disk is full'],
  ['SQLITE_IOERR_FSYNC', 'the disk failed'],
  ['SQLITE_CANTOPEN', 'a file cannot be opened'],
  ['SQLITE_READONLY_DBMOVED', 'the file cannot be written'],
])('%s counts as unavailable: %s', (code) => {
  expect(isUnavailable(failed(code))).toBe(true)
  expect(isUnavailable(new Error('outside', { cause: failed(code) }))).toBe(true)
  expect(isUnavailable(new AggregateError([new Error('one'), failed(code)]))).toBe(true)
})

test.each([
  'timeout exceeded when trying to connect',
  'Query read timeout',
  'Connection terminated unexpectedly',
  'Client has encountered a connection error and is not queryable',
])('a connection that fails without a code counts as unavailable: %s', (message) => {
  expect(isUnavailable(new Error(message))).toBe(true)
})

test.each(['23505', '42P01', '22P05', '25P02', 'SQLITE_CONSTRAINT_UNIQUE', 'SQLITE_ERROR', 'EACCES'])(
  'a fault of the query does not count as unavailable: %s',
  (code) => {
    expect(isUnavailable(failed(code, { message: 'Connection terminated' }))).toBe(false)
  },
)

test('what is no error, and a file that the address names in vain, do not count as unavailable', () => {
  expect(isUnavailable('Connection terminated')).toBe(false)
  expect(isUnavailable(new Error('no such model'))).toBe(false)
  expect(isUnavailable(failed('ENOENT', { syscall: 'open' }))).toBe(false)
  expect(isUnavailable(failed('ENOENT', { syscall: 'connect' }))).toBe(true)
})

test('without a connection every request may be tried again, and a start waits only where waiting helps', () => {
  const [refused, wrongPassword] = [failed('ECONNREFUSED'), failed('28P01')].map((cause) => new NotConnected(cause))
  expect([refused, wrongPassword].map(isUnavailable)).toEqual([true, true])
  expect([refused, wrongPassword].map(isAway)).toEqual([true, false])
})

test('a violated unique constraint is known on both engines', () => {
  const codes = ['23505', 'SQLITE_CONSTRAINT_UNIQUE', '23503']
  expect(codes.map((code) => isUniqueViolation(failed(code)))).toEqual([true, true, false])
})

test('a request is told to come back where the database is away, and else what is wrong', () => {
  const cause = failed('57P01')
  expect(storeError(cause)).toMatchObject({ kind: 'overloaded', details: { retryAfterSeconds: 1, cause } })
  const [bug, refusal] = [failed('42P01'), new GatewayError('conflict', 'It is taken.', { cause })]
  expect([storeError(bug), storeError(refusal)]).toEqual([bug, refusal])
})
