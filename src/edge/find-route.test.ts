import { expect, test } from 'bun:test'
import type { HttpRequest } from '../base/http/request.ts'
import { makeFinder } from './find-route.ts'
import type { Route } from './route.ts'

const route = (method: Route['method'], path: string): Route => ({
  method,
  path,
  auth: 'open',
  serve: () => new Response(),
  writeError: () => ({ status: 400, headers: {}, body: '' }),
})

const find = makeFinder([route('GET', '/a'), route('POST', '/a'), route('GET', '/b'), route('GET', '/t/{id}')])

function seek(method: string, target: string, host = 'x') {
  const found = find({
    method,
    url: `http://${host}${target}`,
    headers: new Headers({ host }),
  } as unknown as HttpRequest)
  return found.kind === 'path' ? `${found.route.method} ${found.route.path} ${found.id}` : found.kind
}

const led = (each: string) => seek(...(each.split(' ') as [string, string]))

test('a request is led by its own method and path, whichever was found before', () => {
  const asked = ['GET /a', 'POST /a', 'HEAD /a', 'PUT /a', 'GET /b', 'GET /t/1', 'GET /t/2', 'GET /t/1?b', 'GET /c']
  const alone = new Map(asked.map((each) => [each, led(each)]))
  expect([...alone.values()]).toEqual([
    'GET /a ',
    'POST /a ',
    'GET /a ',
    'wrong-method',
    'GET /b ',
    'GET /t/{id} 1',
    'GET /t/{id} 2',
    'GET /t/{id} 1',
    'nothing',
  ])
  for (const one of asked)
    for (const other of asked)
      expect([led(one), led(other), led(other)]).toEqual([
        alone.get(one),
        alone.get(other),
        alone.get(other),
      ] as string[])
})

test('a Host that is none is refused, also where it makes the same URL as the request before', () => {
  expect(seek('GET', '/a?/b')).toBe('GET /a ')
  expect(() => seek('GET', '/b', 'x/a?')).toThrow('Host')
})
