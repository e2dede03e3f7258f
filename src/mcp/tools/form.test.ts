import { expect, test } from 'bun:test'
import { GatewayError } from '../../base/errors.ts'
import { readForm } from '../../edge/read-form.ts'
import { formOf } from './form.ts'

const bytesMax = 1024 * 1024

function requestOf({ contentType, stream }: ReturnType<typeof formOf>): Request {
  return new Request('http://localhost/', { method: 'POST', headers: { 'content-type': contentType }, body: stream })
}

test('files are fetched only once the form is read', async () => {
  const fetched: string[] = []
  const fetchFile = (url: string) => {
    fetched.push(url)
    return Promise.resolve(new Uint8Array([1, 2, 3]))
  }
  const files = [
    { field: 'image', source: 'https://example.com/a.png' },
    { field: 'mask', source: `data:image/png;base64,${Buffer.from('mask').toString('base64')}` },
  ]
  const request = requestOf(formOf({ prompt: 'naïve "quotes"\r\n--x', n: 2 }, files, fetchFile))
  await Promise.resolve()
  expect(fetched).toEqual([])
  const form = await readForm(request, bytesMax)
  expect(fetched).toEqual(['https://example.com/a.png'])
  expect(form.body).toEqual({ prompt: 'naïve "quotes"\r\n--x', n: '2' })
  expect(form.files.map(({ field, bytes }) => [field, [...bytes]])).toEqual([
    ['image', [1, 2, 3]],
    ['mask', [...Buffer.from('mask')]],
  ])
})

test.each([
  ['image', 'images'],
  ['image[]', 'images'],
  ['mask', 'mask'],
])('a file for %s that cannot be fetched is an error that names its argument', async (field, param) => {
  const refusal = new GatewayError('bad-request', 'The URL answered 404.', { code: 'invalid_url' })
  const request = requestOf(formOf({}, [{ field, source: 'https://example.com/' }], () => Promise.reject(refusal)))
  const thrown: unknown = await readForm(request, bytesMax).catch((error: unknown) => error)
  const { kind, message } = refusal
  expect(thrown).toMatchObject({ kind, message, details: { code: 'invalid_url', param } })
})

test.each(['file:///etc/passwd', 'a.png', 'data:text/plain,hello', ''])(
  '%p is not a source of an image',
  async (source) => {
    const request = requestOf(formOf({}, [{ field: 'image', source }], () => Promise.reject(new Error('fetched'))))
    const thrown: unknown = await readForm(request, bytesMax).catch((error: unknown) => error)
    expect(thrown).toMatchObject({ kind: 'bad-request', details: { param: 'images' } })
  },
)
