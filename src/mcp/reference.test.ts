import { describe, expect, test } from 'bun:test'
import { endpointsOf, writeEndpoint, writeErrors, writeIndex, type Contract } from './reference.ts'

const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` })
const schema = (name: string) => ({ 'application/json': { schema: ref(name) } })
const failing = (summary: string, code: string) => ({ summary, value: { error: { type: 'refused', code } } })

const contract: Contract = {
  paths: {
    '/v1/tea': {
      post: {
        operationId: 'makeTea',
        summary: 'Make tea',
        description: 'In a pot.',
        requestBody: { content: schema('Order') },
        responses: { '202': { content: schema('Cup') }, '400': {} },
        'x-codeSamples': [
          { lang: 'Shell', source: 'curl /v1/tea' },
          { lang: 'Python', source: 'print()' },
        ],
      },
      get: {
        operationId: 'listTea',
        summary: 'List tea',
        parameters: [{ name: 'limit', in: 'query' }],
        responses: { '200': { description: 'Nothing to refer to.' } },
      },
      head: { summary: 'Has no id' },
    },
  },
  components: {
    schemas: { Order: { properties: { leaf: ref('Leaf') } }, Leaf: { anyOf: [ref('Order')] }, Cup: {}, Unused: {} },
    responses: {
      Error418: { content: { 'application/json': { examples: { a: failing('A | B', 'teapot') } } } },
      NativeError418: { content: { 'application/json': { examples: { a: failing('Native', 'native') } } } },
    },
  },
}

const page = (operation: string) => {
  const endpoint = endpointsOf(contract).find(({ operationId }) => operationId === operation)
  return endpoint === undefined ? '' : writeEndpoint(contract, endpoint)
}

describe('the pages of the reference', () => {
  test('the index has every endpoint with the address of its page', () => {
    expect(writeIndex(contract).split('\n').slice(4)).toEqual([
      '| `POST /v1/tea` | Make tea | turnpike://api/makeTea |',
      '| `GET /v1/tea` | List tea | turnpike://api/listTea |',
      '',
    ])
  })

  test('a page has the body, the answer, one example, and every schema they lead to once', () => {
    const headings = page('makeTea').match(/^##? .*$/gm)
    expect(headings).toEqual(['# POST /v1/tea', '## Body', '## Answer', '## Schemas', '## Example'])
    expect(page('makeTea')).toContain('\n\nMake tea.\n\nIn a pot.\n\n')
    const [, schemas = ''] = /## Schemas\n\n```json\n([^`]*)```/.exec(page('makeTea')) ?? []
    expect(Object.keys(JSON.parse(schemas) as object)).toEqual(['Order', 'Leaf', 'Cup'])
    expect(page('makeTea')).toContain('```shell\ncurl /v1/tea\n```')
    expect(page('makeTea')).toEndWith('Statuses: 202, 400. Errors are explained in turnpike://errors.\n')
  })

  test('a page has no heading without something below it', () => {
    const headings = page('listTea').match(/^##? .*$/gm)
    expect(headings).toEqual(['# GET /v1/tea', '## Parameters', '## Answer'])
  })

  test('the errors are those of the common shape, by status', () => {
    const rows = writeErrors(contract).split('\n').slice(6)
    expect(rows).toEqual(['| 418 | `refused` | `teapot` | A \\| B |', ''])
  })
})
