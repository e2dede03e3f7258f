import { randomUUID } from 'node:crypto'
import { badRequest, GatewayError } from '../../base/errors.ts'

export type FormFile = { readonly field: string; readonly source: string }

const dataUrl = /^data:[\w.+/-]*(?:;[\w=.-]+)*;base64,([A-Za-z0-9+/=_-]+)$/

/**
 * A form with files that may have to be fetched first. Nothing is fetched until the form is read, by which time the key
 * is known to be valid and to have requests left.
 */
export function formOf(
  fields: Readonly<Record<string, unknown>>,
  files: readonly FormFile[],
  fetchFile: (url: string) => Promise<Uint8Array>,
): { contentType: string; stream: ReadableStream<Uint8Array> } {
  const boundary = `turnpike-${randomUUID()}`
  const parts = pieces(boundary, fields, files, fetchFile)
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await parts.next()
          if (done === true) controller.close()
          else controller.enqueue(value)
        } catch (thrown) {
          controller.error(thrown)
        }
      },
    },
    { highWaterMark: 0 },
  )
  return { contentType: `multipart/form-data; boundary=${boundary}`, stream }
}

async function* pieces(
  boundary: string,
  fields: Readonly<Record<string, unknown>>,
  files: readonly FormFile[],
  fetchFile: (url: string) => Promise<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const head = (about: string) => `--${boundary}\r\nContent-Disposition: form-data; ${about}\r\n`
  // The schema limits all names, and all values but free texts, in which only the random boundary would mean anything.
  for (const [name, value] of Object.entries(fields)) {
    yield Buffer.from(`${head(`name="${name}"`)}\r\n${String(value)}\r\n`)
  }
  for (const [index, { field, source }] of files.entries()) {
    const bytes = await read(source, field, fetchFile)
    const type = 'Content-Type: application/octet-stream\r\n\r\n'
    yield Buffer.concat([Buffer.from(`${head(`name="${field}"; filename="file-${index}"`)}${type}`), bytes])
    yield Buffer.from('\r\n')
  }
  yield Buffer.from(`--${boundary}--\r\n`)
}

async function read(
  source: string,
  field: string,
  fetchFile: (url: string) => Promise<Uint8Array>,
): Promise<Uint8Array> {
  const base64 = source.startsWith('data:') ? dataUrl.exec(source)?.[1] : undefined
  if (base64 !== undefined) return Buffer.from(base64, 'base64')
  const param = field === 'mask' ? 'mask' : 'images'
  if (!/^https?:\/\//i.test(source)) throw badRequest(`Invalid '${param}': expected an https or a data: URL.`, param)
  try {
    return await fetchFile(source)
  } catch (thrown) {
    throw thrown instanceof GatewayError && thrown.kind === 'bad-request' ? about(param, thrown) : thrown
  }
}

/** Adds the field: the refusal of a link does not say in which of the client's fields the link was. */
function about(param: string, { kind, message, details }: GatewayError): GatewayError {
  return new GatewayError(kind, message, { ...details, param })
}
