import { describe, expect, test } from 'bun:test'
import { nano } from '../../base/money.ts'
import { byRef, readBill, readExport } from './bill.ts'

describe("the simulators' bill", () => {
  test('each line is read with its reference, model, units and cost', () => {
    const text = JSON.stringify({
      data: [
        {
          ref: 'att_1',
          model: 'm',
          status: 200,
          units: { input: 3, cachedInput: 0, output: 4, reasoning: 1 },
          cost: '0.000000043',
        },
        { ref: null, model: 'm', status: 401, units: {}, cost: '0' },
      ],
    })
    expect(readBill(text)).toEqual([
      { ref: 'att_1', model: 'm', units: { input: 3, output: 4 }, cost: nano(43n) },
      { ref: null, model: 'm', units: {}, cost: nano(0n) },
    ])
  })

  test.each([
    ['<html>', 'not a JSON object'],
    ['{"data": [1]}', 'line 1 of the bill is not an object'],
    ['{"data": [{"ref": "a", "cost": 0.1}]}', 'not a cost in dollars'],
    ['{"data": [{"ref": "a", "cost": "-1"}]}', 'not a cost in dollars'],
  ])('%s is refused', (text, why) => {
    expect(() => readBill(text)).toThrow(why)
  })
})

describe("a vendor's export", () => {
  test('columns are found by name in any order, and unknown ones are ignored', () => {
    const text =
      '\uFEFFtime,cost,note,ref,input,output\r\n2027-01-31T10:00:00Z,0.5,"a ""b"", c",att_1,3,4\r\n,1,,att_2,,\r\n'
    expect(readExport(text)).toEqual([
      { ref: 'att_1', cost: nano(500_000_000n), units: { input: 3, output: 4 }, at: Date.UTC(2027, 0, 31, 10) },
      { ref: 'att_2', cost: nano(1_000_000_000n) },
    ])
  })

  test('a line may name its model, and no call of ours', () => {
    expect(readExport('cost, model ,ref\n1,"the ""large"" one", \n2,,att_1\n')).toEqual([
      { ref: null, cost: nano(1_000_000_000n), model: 'the "large" one' },
      { ref: 'att_1', cost: nano(2_000_000_000n) },
    ])
    for (const text of ['ref,model\na,m', 'cost,model\n1,m']) expect(() => readExport(text)).toThrow('ref and cost')
  })

  test('a cost finer than a nano is rounded half up', () => {
    expect(readExport('ref,cost\na,0.0000000005\nb,0.00000000049')).toEqual([
      { ref: 'a', cost: nano(1n) },
      { ref: 'b', cost: nano(0n) },
    ])
  })

  test('a cost may be in exponent notation or have many decimals', () => {
    const costs = ['4.68e-05', '1E-9', '0.000046799999999999996', '1e3', '2.5e+00']
    const read = readExport(`ref,cost\n${costs.map((cost, at) => `${at},${cost}`).join('\n')}`)
    expect(read.map(({ cost }) => String(cost))).toEqual(['46800', '1', '46800', '1000000000000', '2500000000'])
  })

  test('a currency column may say USD or be empty', () => {
    const text = 'ref,cost,currency\na,1,USD\nb,2,usd\nc,3,'
    expect(readExport(text).map(({ cost }) => cost)).toEqual([
      nano(10n ** 9n),
      nano(2n * 10n ** 9n),
      nano(3n * 10n ** 9n),
    ])
  })

  test.each([
    ['', 'empty'],
    ['ref,cost,currency\na,1,USD\nb,7,CNY', 'line 3 of the export: a cost in CNY'],
    ['ref,cost\na,1e', 'not a cost in dollars'],
    ['ref,cost\na,.5e1e1', 'not a cost in dollars'],
    ['ref,cost\na,-1e-5', 'not a cost in dollars'],
    ['id,amount\na,1', 'ref and cost'],
    ['ref,cost\na,free', 'line 2 of the export: "free"'],
    ['ref,cost,time\na,1,yesterday', 'not a time'],
    ['ref,cost,output\na,1,4\nb,1,many', 'line 3 of the export: "many" is not a count of output'],
    ['ref,cost,input\na,1,-3', 'not a count of input'],
    ['ref,cost,input\na,1,3.5', 'not a count of input'],
    ['ref,cost\n"a,1', 'not valid CSV'],
  ])('%j is refused', (text, why) => {
    expect(() => readExport(text)).toThrow(why)
  })
})

function line(ref: string | null, cost: bigint) {
  return { ref, cost: nano(cost) }
}

test('a call that is billed twice is owed twice and reported as repeated', () => {
  const { lines, nameless, repeated } = byRef([line('a', 1n), line('b', 2n), line('a', 3n), line(null, 4n)])
  expect(lines.get('a')?.cost).toBe(nano(4n))
  expect(nameless).toEqual([line(null, 4n)])
  expect([...repeated]).toEqual([['a', 2]])
})

// A video order that never reached its vendor is sent again under the same reference.
test('a line that costs nothing does not count as a repeated charge', () => {
  const { lines, repeated } = byRef([line('a', 0n), line('b', 0n), line('a', 5n), line('a', 0n), line('b', 0n)])
  expect(lines.get('a')?.cost).toBe(nano(5n))
  expect([...repeated]).toEqual([])
})

test('several lines of one call are merged, with their costs and units added up', () => {
  const { lines, repeated } = byRef([
    { ...line('a', 1n), units: { input: 3, cachedInput: 2 }, model: 'm', at: 7 },
    { ...line('a', 2n), units: { output: 4, input: 1 } },
    line('a', 3n),
  ])
  const units = { input: 4, cachedInput: 2, output: 4 }
  expect(lines.get('a')).toEqual({ ref: 'a', cost: nano(6n), units, model: 'm', at: 7 })
  expect([...repeated]).toEqual([['a', 3]])
  expect(byRef([line('a', 1n), line('a', 2n)]).lines.get('a')).toEqual(line('a', 3n))
})
