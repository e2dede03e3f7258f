import { expect, test } from 'bun:test'
import { Gathering } from './gathering.ts'

const gathered = (gathering: Gathering) => new Promise<void>((resolve) => gathering.join(resolve))

test('those who join in one turn of the event loop go on after the last of them has joined, in order', async () => {
  const gathering = new Gathering()
  const seen: string[] = []
  for (const name of ['a', 'b', 'c']) {
    seen.push(`${name} joins`)
    gathering.join(() => seen.push(`${name} goes`))
    await Promise.resolve() // a later step of the same turn
  }
  await gathered(gathering)
  expect(seen).toEqual(['a joins', 'b joins', 'c joins', 'a goes', 'b goes', 'c goes'])
})

test('from then on they go in step: each takes its first step before any takes its second', async () => {
  const gathering = new Gathering()
  const seen: string[] = []
  const walk = async (name: string) => {
    await gathered(gathering)
    for (const step of [1, 2, 3]) {
      seen.push(`${name}${step}`)
      await Promise.resolve()
    }
  }
  await Promise.all([walk('a'), walk('b')])
  expect(seen).toEqual(['a1', 'b1', 'a2', 'b2', 'a3', 'b3'])
})

test('one who joins while the others go on goes at the end of the next turn', async () => {
  const gathering = new Gathering()
  const seen: string[] = []
  const late = Promise.withResolvers<void>()
  gathering.join(() => {
    gathering.join(() => {
      seen.push('late')
      late.resolve()
    })
    seen.push('first')
  })
  gathering.join(() => seen.push('second'))
  await late.promise
  expect(seen).toEqual(['first', 'second', 'late'])
})
