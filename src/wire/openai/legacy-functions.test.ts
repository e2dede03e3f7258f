import { expect, test } from 'bun:test'
import { isLegacy, readFunctionChoice, readFunctions, writeFunctionCall } from './legacy-functions.ts'

const old = { name: 'f' }

test('the old words are meant where there are no tools', () => {
  const meant = [{ functions: [old] }, { functions: [] }, {}, { functions: [old], tools: [{}] }, { tools: [{}] }]
  expect(meant.map((native) => isLegacy({ native }))).toEqual([true, false, false, false, false])
})

test('functions are tools, and one without parameters takes none', () => {
  const schema = { type: 'object', properties: { a: {} } }
  const none = { type: 'object', properties: {} }
  const functions = [{ ...old, description: 'does', parameters: schema }, old, { ...old, parameters: null }]
  expect(readFunctions({ functions })).toEqual([
    { name: 'f', description: 'does', schema },
    { name: 'f', schema: none },
    { name: 'f', schema: none },
  ])
})

test('a choice is a word, or a name', () => {
  expect(['auto', 'none', old, {}, undefined].map(readFunctionChoice)).toEqual([
    'auto',
    'none',
    { name: 'f' },
    undefined,
    undefined,
  ])
})

const call = (name: string) => ({ id: 'c', type: 'function', function: { name, arguments: '{}' } })

test('of several calls there is room for the first', () => {
  expect(writeFunctionCall({ content: null, tool_calls: [call('f'), call('g')] })).toEqual({
    content: null,
    function_call: { name: 'f', arguments: '{}' },
  })
  expect(writeFunctionCall({ content: 'Hi' })).toEqual({ content: 'Hi' })
})
