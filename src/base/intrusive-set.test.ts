import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { IntrusiveSet, type Member } from './intrusive-set.ts'

type Named = Member & { readonly name: number }
const named = (name: number): Named => ({ name, place: -1 })
const names = (crowd: IntrusiveSet<Named>) => [...crowd].map(({ name }) => name).toSorted((a, b) => a - b)

test('an intrusive set has the members of a Set after any additions and removals', () => {
  fc.assert(
    fc.property(fc.array(fc.record({ who: fc.nat(9), comes: fc.boolean() }), { maxLength: 60 }), (steps) => {
      const all = Array.from({ length: 10 }, (_, name) => named(name))
      const crowd = new IntrusiveSet<Named>()
      const set = new Set<number>()
      for (const { who, comes } of steps) {
        const member = all[who] ?? named(0)
        if (comes) {
          crowd.add(member)
          set.add(who)
        } else {
          expect(crowd.remove(member)).toBe(set.delete(who))
        }
        expect(crowd.size).toBe(set.size)
      }
      expect(names(crowd)).toEqual([...set].toSorted((a, b) => a - b))
    }),
  )
})

test('iteration visits every member even if each is removed in its turn', () => {
  const crowd = new IntrusiveSet<Named>()
  const all = Array.from({ length: 5 }, (_, name) => named(name))
  for (const member of all) crowd.add(member)
  const seen: number[] = []
  for (const member of crowd) {
    seen.push(member.name)
    crowd.remove(member)
  }
  expect(seen.toSorted((a, b) => a - b)).toEqual([0, 1, 2, 3, 4])
  expect(crowd.size).toBe(0)
})
