import { expect, test } from 'bun:test'
import { isLegacy, readFunctionChoice, readFunctions, writeFunctionCall } from './legacy-functions.ts'

const old = { name: 'f' }

test('a request is legacy where it has functions and no tools', () => {
  const meant = [{ functions: [old] }, { functions: [] }, {}, { functions: [old], tools: [{}] }, { tools: [{}] }]
  expect(meant.map((native) => isLegacy({ native }))).toEqual([true, false, false, false, false])
})

test('functions are read as tools, and missing parameters become an empty object schema', () => {
  const schema = { type: 'object', properties: { a: {} } }
  const none = { type: 'object', properties: {} }
  const functions = [{ ...old, description: 'does', parameters: schema }, old, { ...old, parameters: null }]
  expect(readFunctions({ functions })).toEqual([
    { name: 'f', description: 'does', schema },
    { name: 'f', schema: none },
    { name: 'f', schema: none },
  ])
})

test('function_call is read as auto, none or the name of a function', () => {
  expect(['auto', 'none', old, {}, undefined].map(readFunctionChoice)).toEqual([
    'auto',
    'none',
    { name: 'f' },
    undefined,
    undefined,
  ])
})

const call = (name: string) => ({ id: 'c', type: 'function', function: { name, arguments: '{}' } })

test('only the first of several calls is written as function_call', () => {
  expect(writeFunctionCall({ content: null, tool_calls: [call('f'), call('g')] })).toEqual({
    content: null,
    function_call: { name: 'f', arguments: '{}' },
  })
  expect(writeFunctionCall({ content: 'Hi' })).toEqual({ content: 'Hi' })
})
