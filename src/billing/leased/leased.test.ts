import { describe, expect, test } from 'bun:test'
import { endingOf, orderOf, saleOf, sentOf } from '../../../test/simulation/request.ts'
import { held, send, town, up, watch } from '../../../test/simulation/town.ts'
import { GatewayError } from '../../base/errors.ts'
import { recoverJournal } from './journal.ts'
import { replay } from './replay.ts'

const overloaded = expect.objectContaining({ kind: 'overloaded' })
const nothingNew = expect.objectContaining({ message: 'Nothing new can be recorded at the moment.' })

test('a hold is taken and settled on the lease alone, and its charge is posted soon after', () => {
  const { model, machines, start, pass } = town()
  start()
  const taken = watch(up(machines[0]).take(orderOf('req_1', 'acc_a', 10n)))
  pass(5)
  const hold = held(taken)
  send(hold, 'att_1')
  const settled = watch(hold.settle(saleOf(7n, ['att_1'])))
  // A second request takes from what the first has left of the lease, without any time passing.
  const second = watch(up(machines[0]).take(orderOf('req_2', 'acc_a', 10n)))
  pass(0)
  expect(settled.value as bigint).toBe(7n)
  // The charge is posted soon, not only when the lease is given back.
  pass(600)
  expect([...model.costs]).toEqual([['req_1', 7n]])
  const released = watch(held(second).release(endingOf([], 0n)))
  pass(3_500)
  expect(released).toEqual({ value: undefined })
  expect(model.accounts.get('acc_a')).toMatchObject({ posted: 993n, held: 0n })
  expect([...model.costs]).toEqual([
    ['req_1', 7n],
    ['req_2', 0n],
  ])
})

test('a hold is journaled with its first attempt, and each further attempt by itself', () => {
  const { machine, start, pass } = town()
  start()
  const taken = watch(up(machine).take(orderOf('req_1', 'acc_a', 10n)))
  pass(5)
  const written = () => recoverJournal(machine.disk.attach(machine.life)).records.filter(({ type }) => type !== 'OPEN')
  const { writes } = machine.disk
  expect(written()).toEqual([])
  for (const id of ['att_1', 'att_2']) {
    send(held(taken), id)
    pass(0)
  }
  expect(machine.disk.writes - writes).toBe(2)
  const id = expect.any(String)
  expect(written()).toEqual([
    { type: 'HOLD', id, order: orderOf('req_1', 'acc_a', 10n), attempt: sentOf('att_1') },
    { type: 'SEND', id, attempt: sentOf('att_2') },
  ])
})

test('what requests that go in step record shares one write, and none of them goes on before it', () => {
  const { machine, start, pass } = town()
  start()
  const taken = ['req_1', 'req_2', 'req_3'].map((id) => watch(up(machine).take(orderOf(id, 'acc_a', 10n))))
  pass(5)
  const { writes } = machine.disk
  const recorded = taken.map((one, at) => send(held(one), `att_${at}`))
  expect(machine.disk.writes).toBe(writes)
  expect(recorded).toEqual([{}, {}, {}])
  pass(0)
  expect(machine.disk.writes).toBe(writes + 1)
  expect(recorded.every((one) => 'value' in one)).toBe(true)
  const owed = replay(recoverJournal(machine.disk.attach(machine.life)).records)
  expect(owed.map(({ request }) => request.id)).toEqual(['req_1', 'req_2', 'req_3'])
})

test('a new journal segment has every attempt of a request under way', () => {
  const { machine, start, pass } = town({ segmentBytes: 2_000 })
  start()
  const taken = watch(up(machine).take(orderOf('req_1', 'acc_a', 10n)))
  pass(50)
  for (const id of ['att_1', 'att_2', 'att_3']) send(held(taken), id)
  const written = () => recoverJournal(machine.disk.attach(machine.life))
  const { generation } = written().last
  for (let at = 0; at < 50 && written().last.generation === generation; at++) {
    const other = watch(up(machine).take(orderOf(`req_other_${at}`, 'acc_a', 0n)))
    pass(10)
    send(held(other), `att_other_${at}`)
    watch(held(other).release(endingOf([], 0n)))
    pass(10)
  }
  expect(written().last.generation).toBeGreaterThan(generation)
  const owed = replay(written().records).find(({ request }) => request.id === 'req_1')
  expect(owed?.attempts.map(({ id }) => id)).toEqual(['att_1', 'att_2', 'att_3'])
})

test('after a restart, reachedVendors names the requests that had been sent', () => {
  const { machines, start, pass } = town()
  const [machine] = machines
  start()
  const [sent, unsent] = ['req_sent', 'req_unsent'].map((id) => watch(up(machine).take(orderOf(id, 'acc_a', 10n))))
  pass(50)
  if (sent === undefined || unsent === undefined) throw new Error('no holds')
  send(held(sent), 'att_1')
  watch(held(unsent).release(endingOf([], 0n)))
  pass(0)
  machine?.kill('kill')
  start()
  expect(up(machine).reachedVendors).toEqual(['req_sent'])
})

test('a fenced-off node is not ready and refuses new holds', () => {
  const { world, model, machines, start, pass } = town()
  const [machine] = machines
  start()
  const taken = watch(up(machine).take(orderOf('req_1', 'acc_a', 10n)))
  pass(5)
  model.open('node_0', [])
  const settled = watch(held(taken).settle(saleOf(7n, [])))
  const billing = up(machine)
  world.run(world.now + 600)
  expect(settled.value as bigint).toBe(7n)
  expect(world.failures).toEqual([expect.stringContaining('was fenced off')])
  expect(billing.ready).toBe(false)
  const late = watch(billing.take(orderOf('req_2', 'acc_a', 1n)))
  world.run(world.now + 10)
  expect(late.error).toEqual(overloaded)
})

test('a node with an open hold keeps taking turns while nothing ends', () => {
  const { model, machines, start, pass } = town()
  start()
  const taken = watch(up(machines[0]).take(orderOf('req_1', 'acc_a', 10n)))
  pass(5_000)
  held(taken)
  const { turn = 0 } = model.nodes.get('node_0') ?? {}
  pass(60_000)
  expect(model.nodes.get('node_0')?.turn).toBeWithin(turn + 2, turn + 5)
})

test('an attempt that cannot be written to the journal does not count as sent', () => {
  const { machine, start, pass } = town()
  start()
  const taken = watch(up(machine).take(orderOf('req_1', 'acc_a', 10n)))
  pass(5)
  machine.disk.othersBytes = 1_000_000
  const refused = send(held(taken), 'att_1')
  pass(0)
  expect(refused.error).toEqual(nothingNew)
  // The reserve was given up for nothing, so the node admits nothing until it has set one aside again.
  expect(up(machine).ready).toBe(false)
  pass(1_500)
  expect(up(machine).ready).toBe(false)
  machine.disk.othersBytes = 0
  pass(1_500)
  expect(up(machine).ready).toBe(true)
  send(held(taken), 'att_2')
  pass(0)
  const [owed] = replay(recoverJournal(machine.disk.attach(machine.life)).records)
  expect(owed?.attempts.map(({ id }) => id)).toEqual(['att_2'])
})

test('a second ending of a hold changes nothing', () => {
  const { model, machines, start, pass } = town()
  start()
  const taken = watch(up(machines[0]).take(orderOf('req_1', 'acc_a', 10n)))
  pass(5)
  const hold = held(taken)
  send(hold, 'att_1')
  const endings = [
    watch(hold.settle(saleOf(7n, ['att_1']))),
    watch(hold.settle(saleOf(9n, ['att_1']))),
    watch(hold.release(endingOf([], 0n))),
  ]
  pass(3_500)
  expect(endings[0]?.value).toBeDefined()
  expect(endings[1]?.error).toBeInstanceOf(GatewayError)
  expect(endings[2]).toEqual({ value: undefined })
  const late = send(hold, 'att_2')
  pass(0)
  expect(late.error).toEqual(expect.objectContaining({ message: expect.stringContaining('has ended, and is sent') }))
  expect(model.accounts.get('acc_a')).toMatchObject({ posted: 993n, held: 0n })
})

describe('a full disk', () => {
  test('a node that starts on a full disk admits nothing until there is room', () => {
    const { machine, start, pass } = town()
    machine.disk.othersBytes = 80_000
    start()
    expect(up(machine).ready).toBe(false)
    const refused = watch(up(machine).take(orderOf('req_1', 'acc_a', 1n)))
    pass(0)
    expect(refused.error).toEqual(overloaded)
    machine.disk.othersBytes = 0
    pass(1_500)
    expect(up(machine).ready).toBe(true)
    const taken = watch(up(machine).take(orderOf('req_2', 'acc_a', 1n)))
    pass(5)
    held(taken)
  })

  test('running requests settle while the disk is full, and no new ones begin', () => {
    // The reserve is meant to have room for both segments. Here it does not, so the segment is too large to rotate.
    const { model, machine, start, pass } = town({ segmentBytes: 1_000_000 })
    start()
    const taken = Array.from({ length: 20 }, (_, at) => watch(up(machine).take(orderOf(`req_${at}`, 'acc_a', 10n))))
    pass(50)
    const holds = taken.map(held)
    const unsent = watch(up(machine).take(orderOf('req_unsent', 'acc_a', 10n)))
    pass(50)
    holds.forEach((hold, at) => send(hold, `att_${at}`))
    pass(0)
    machine.disk.othersBytes = 70_000
    const endings = holds.map((hold, at) => watch(hold.settle(saleOf(5n, [`att_${at}`]))))
    pass(0)
    expect(up(machine).ready).toBe(false)
    const late = watch(up(machine).take(orderOf('req_late', 'acc_a', 1n)))
    const refused = send(held(unsent), 'att_unsent')
    watch(held(unsent).release(endingOf([], 0n)))
    pass(3_500)
    expect(refused.error).toEqual(nothingNew)
    expect(late.error).toEqual(overloaded)
    for (const { value } of endings) expect(value as bigint).toBe(5n)
    expect(model.accounts.get('acc_a')).toMatchObject({ posted: 900n, held: 0n })
    machine.disk.othersBytes = 0
    pass(1_500)
    expect(up(machine).ready).toBe(true)
  })
})

describe('a bank that cannot be reached', () => {
  test('a node closes without the bank, and its next start posts what is owed', () => {
    const { world, model, network, machines, start, pass } = town()
    const [machine] = machines
    start()
    const taken = watch(up(machine).take(orderOf('req_1', 'acc_a', 10n)))
    pass(5)
    const hold = held(taken)
    send(hold, 'att_1')
    network.downUntil = Infinity
    watch(hold.settle(saleOf(7n, ['att_1'])))
    const closed = watch(machine?.close() ?? Promise.resolve())
    pass(1_000)
    expect(closed).toEqual({ value: undefined })
    network.downUntil = world.now
    start()
    pass(100)
    expect(model.accounts.get('acc_a')).toMatchObject({ posted: 993n, held: 0n })
  })

  test('requests that wait for a recall fail with an error instead of hanging', () => {
    const { network, machines, start, pass } = town({ nodes: 2, balance: 10n })
    start()
    const whole = watch(up(machines[0]).take(orderOf('req_1', 'acc_a', 10n)))
    pass(20)
    held(whole)
    const waiting = watch(up(machines[1]).take(orderOf('req_2', 'acc_a', 10n)))
    pass(50)
    network.downUntil = Infinity
    // Another request finds out that the bank is away, while the first waits for other nodes to give back.
    const other = watch(up(machines[1]).take(orderOf('req_3', 'acc_b', 10n)))
    pass(20)
    expect(other.error).toEqual(overloaded)
    pass(200)
    expect(waiting.error).toEqual(overloaded)
  })

  test('requests are served from the lease, and those beyond it fail as overloaded', () => {
    const { network, machines, start, pass } = town()
    start()
    const first = watch(up(machines[0]).take(orderOf('req_1', 'acc_a', 10n)))
    pass(5)
    held(first)
    network.downUntil = Infinity
    const second = watch(up(machines[0]).take(orderOf('req_2', 'acc_a', 10n)))
    const third = watch(up(machines[0]).take(orderOf('req_3', 'acc_a', 990n)))
    pass(1_000)
    held(second)
    expect(third.error).toEqual(overloaded)
  })
})

describe('a balance that another node has leased', () => {
  test('the unused part of the lease is recalled before a request is refused', () => {
    const { machines, start, pass } = town({ nodes: 2, balance: 10n })
    start()
    const whole = watch(up(machines[0]).take(orderOf('req_1', 'acc_a', 10n)))
    pass(20)
    watch(held(whole).release(endingOf([], 0n)))
    const asked = watch(up(machines[1]).take(orderOf('req_2', 'acc_a', 10n)))
    pass(300)
    held(asked)
  })

  test('a recall that arrives during a turn is not forgotten', () => {
    const { network, machines, start, pass } = town({ nodes: 2, balance: 1_000n })
    network.latencyMsMax = 40
    start()
    const whole = watch(up(machines[0]).take(orderOf('req_1', 'acc_a', 990n)))
    pass(200)
    const hold = held(whole)
    for (let at = 0; at < 10; at++) {
      const other = watch(up(machines[0]).take(orderOf(`req_small_${at}`, 'acc_a', 0n)))
      pass(1)
      watch(held(other).release(endingOf([], 0n)))
    }
    watch(hold.release(endingOf([], 0n)))
    const asked = watch(up(machines[1]).take(orderOf('req_2', 'acc_a', 990n)))
    pass(700)
    held(asked)
  })

  test('the part of the lease in use stays, and the refusal says what is available', () => {
    const { machines, start, pass } = town({ nodes: 2, balance: 10n })
    start()
    const some = watch(up(machines[0]).take(orderOf('req_1', 'acc_a', 7n)))
    pass(20)
    held(some)
    const asked = watch(up(machines[1]).take(orderOf('req_2', 'acc_a', 5n)))
    pass(1_000)
    expect(asked.value).toEqual({ kind: 'no-funds', available: expect.anything() })
    expect(asked.value?.kind === 'no-funds' && (asked.value.available as bigint)).toBe(3n)
  })
})

test('a request that arrives during a turn is not refused by it, as money may have come in since', () => {
  const { model, network, machines, start, pass } = town({ balance: 0n })
  start()
  network.latencyMsMax = 100
  const early = watch(up(machines[0]).take(orderOf('req_1', 'acc_a', 10n)))
  // The turn has left, and has found the balance empty or is about to.
  pass(1)
  while (model.nodes.get('node_0')?.turn === 0) pass(1)
  model.credit('acc_a', 10n)
  const late = watch(up(machines[0]).take(orderOf('req_2', 'acc_a', 10n)))
  pass(500)
  expect(early.value).toMatchObject({ kind: 'no-funds' })
  held(late)
})

test('a slow turn does not take effect after the bank was asked about it', () => {
  const { model, network, machines, start, pass } = town()
  start()
  network.isLate = 1
  const taken = watch(up(machines[0]).take(orderOf('req_1', 'acc_a', 10n)))
  pass(30)
  network.isLate = 0
  expect(taken.error).toEqual(overloaded)
  pass(3_000)
  const again = watch(up(machines[0]).take(orderOf('req_2', 'acc_a', 10n)))
  pass(50)
  watch(held(again).release(endingOf([], 0n)))
  pass(3_500)
  expect(model.accounts.get('acc_a')).toMatchObject({ posted: 1_000n, held: 0n })
})

test('a lease that does not add up stops the node', () => {
  const { world, machines, start, pass } = town()
  start()
  const order = { ...orderOf('req_1', 'acc_a', 10n) }
  const taken = watch(up(machines[0]).take(order))
  pass(5)
  const hold = held(taken)
  send(hold, 'att_1')
  // Stands for any mistake by which more comes back than was taken.
  Object.assign(order, { amount: 1_000_000n })
  const settled = watch(hold.settle(saleOf(7n, ['att_1'])))
  world.run(world.now + 5)
  expect(settled.error).toMatchObject({ message: expect.stringContaining('a lease does not add up') })
  expect(world.failures).toEqual([expect.stringMatching(/node_0.* stops: .*a lease does not add up/)])
})
