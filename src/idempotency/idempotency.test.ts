import { expect, test } from 'bun:test'
import { newRequestId } from '../base/ids.ts'
import { eachEngine } from '../../test/support/engines.ts'
import { accountId, fundedAccount } from '../../test/support/ledger.ts'
import { thrownBy } from '../../test/support/thrown.ts'
import { makeIdempotency } from './idempotency.ts'

// What is kept here is short. Long answers: test/faults/idempotency.test.ts
const none = { layAside: () => Promise.reject(new Error('no room')), pickUp: () => Promise.resolve(undefined) }

eachEngine('what is remembered under an Idempotency-Key', (open) => {
  const begin = async () => {
    const store = await open()
    await fundedAccount(store)
    const idempotency = makeIdempotency({ store, secret: Buffer.alloc(32, 1), node: 'node_a', longAnswers: none })
    const body = Buffer.from('{}')
    const ask = () =>
      idempotency.begin({ accountId, path: '/v1/videos/generations', key: 'once', body, requestId: newRequestId() })
    const begun = await ask()
    if (begun.kind === 'replay') throw new Error('somebody was here before')
    return { store, ask, attempt: begun.attempt }
  }
  const completed = { details: { code: 'already_completed' } }

  test('an answer that was kept in a commit outlives a failure after it', async () => {
    const { store, ask, attempt } = await begin()
    await store.transaction((tx) => attempt.keepIn(tx, 202, '{"id":"vid_1"}'))
    await attempt.keepFact(500)
    expect(await ask()).toMatchObject({ kind: 'replay', status: 202, body: Buffer.from('{"id":"vid_1"}') })
  })

  test('a fact is kept where there is no more than that', async () => {
    const { ask, attempt } = await begin()
    await attempt.keepFact(500)
    expect(await thrownBy(ask())).toMatchObject(completed)
  })

  test('what did not happen is free, also where it was taken for done', async () => {
    const { store, ask, attempt } = await begin()
    await store.transaction((tx) => attempt.keepIn(tx, 202, '{}'))
    await attempt.free()
    expect(await ask()).toMatchObject({ kind: 'begun' })
  })

  test('of an answer that there is no room for, it is kept that it was given', async () => {
    const { ask, attempt } = await begin()
    await attempt.keep(200, Buffer.alloc(2 * 1024 * 1024, '0'))
    expect(await thrownBy(ask())).toMatchObject(completed)
  })
})
