/** One request as the bucket's server saw it. */
export type S3Request = {
  readonly method: string
  readonly path: string
  readonly query: string
  readonly authorization: string
  readonly range: string | null
}

export type TinyS3 = {
  readonly endpoint: string
  readonly objects: Map<string, { readonly bytes: Buffer<ArrayBuffer>; readonly type: string }>
  readonly seen: S3Request[]
  /** From now on every request gets this status; 0 serves requests again. */
  failWith(status: number): void
  /** From now on requests are read but never answered. */
  hang(): void
  stop(): Promise<void>
}

const signed =
  /^AWS4-HMAC-SHA256 Credential=(\w+)\/\d{8}\/([\w-]+)\/s3\/aws4_request, ?SignedHeaders=[\w;-]+, ?Signature=[0-9a-f]{64}$/

/**
 * The part of S3 that results need, over real HTTP: one bucket, objects in memory, requests signed with the known key.
 */
export function startTinyS3({ bucket = 'results', accessKeyId = 'AKTEST', region = 'eu-test' } = {}): TinyS3 {
  const objects: TinyS3['objects'] = new Map()
  const uploads = new Map<string, { key: string; type: string; parts: Buffer[] }>()
  const seen: S3Request[] = []
  let failure = 0
  let isHanging = false

  async function serve(request: Request): Promise<Response> {
    const { pathname, searchParams: query, search } = new URL(request.url)
    const authorization = request.headers.get('authorization') ?? ''
    const range = request.headers.get('range')
    seen.push({ method: request.method, path: pathname, query: search, authorization, range })
    if (isHanging) return new Promise(() => {})
    if (failure !== 0) return fault(failure, 'SlowDown')
    const [, givenKey, givenRegion] = signed.exec(authorization) ?? []
    const hasDate = request.headers.has('x-amz-date') && request.headers.has('x-amz-content-sha256')
    if (givenKey !== accessKeyId || givenRegion !== region || !hasDate) return fault(403, 'AccessDenied')
    if (request.headers.has('x-amz-security-token')) return fault(403, 'InvalidToken')
    const [, givenBucket, ...rest] = decodeURIComponent(pathname).split('/')
    if (givenBucket !== bucket) return fault(404, 'NoSuchBucket')
    const key = rest.join('/')
    if (query.has('list-type')) return list(query)
    const type = request.headers.get('content-type') ?? ''
    const upload = uploads.get(query.get('uploadId') ?? '')
    if (request.method === 'POST' && query.has('uploads')) {
      const id = `upload-${uploads.size}`
      uploads.set(id, { key, type, parts: [] })
      return xml(`<InitiateMultipartUploadResult><UploadId>${id}</UploadId></InitiateMultipartUploadResult>`)
    }
    if (request.method === 'PUT' && upload !== undefined) {
      upload.parts[Number(query.get('partNumber')) - 1] = Buffer.from(await request.bytes())
      return new Response(null, { headers: { etag: '"part"' } })
    }
    if (request.method === 'POST' && upload !== undefined) {
      await request.text()
      objects.set(upload.key, { bytes: Buffer.concat(upload.parts), type: upload.type })
      return xml('<CompleteMultipartUploadResult><ETag>"whole"</ETag></CompleteMultipartUploadResult>')
    }
    if (request.method === 'PUT') {
      objects.set(key, { bytes: Buffer.from(await request.bytes()), type })
      return new Response(null, { headers: { etag: '"whole"' } })
    }
    if (request.method === 'DELETE') {
      objects.delete(key)
      return new Response(null, { status: 204 })
    }
    return read(key, request.method, range)
  }

  function list(query: URLSearchParams): Response {
    const prefix = query.get('prefix') ?? ''
    const after = query.get('start-after') ?? ''
    const max = Number(query.get('max-keys') ?? 1000)
    const found = [...objects]
      .filter(([key]) => key.startsWith(prefix) && key > after)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
    const shown = found.slice(0, max).map(([key, { bytes }]) => {
      const at = '<LastModified>2027-01-01T00:00:00.000Z</LastModified>'
      return `<Contents><Key>${key}</Key>${at}<ETag>"whole"</ETag><Size>${bytes.length}</Size></Contents>`
    })
    const isTruncated = `<IsTruncated>${found.length > max}</IsTruncated>`
    return xml(`<ListBucketResult><Name>${bucket}</Name>${isTruncated}${shown.join('')}</ListBucketResult>`)
  }

  function read(key: string, method: string, range: string | null): Response {
    const object = objects.get(key)
    if (object === undefined) return fault(404, 'NoSuchKey')
    const { bytes, type } = object
    const headers = { 'content-type': type, etag: '"whole"', 'last-modified': 'Fri, 01 Jan 2027 00:00:00 GMT' }
    if (method === 'HEAD')
      return new Response(null, { headers: { ...headers, 'content-length': String(bytes.length) } })
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(range ?? '') ?? []
    if (first === undefined) return new Response(bytes, { headers })
    const end = last === '' ? bytes.length - 1 : Number(last)
    const part = bytes.subarray(Number(first), end + 1)
    return new Response(part, {
      status: 206,
      headers: { ...headers, 'content-range': `bytes ${first}-${end}/${bytes.length}` },
    })
  }

  const server = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: serve })
  return {
    endpoint: `http://127.0.0.1:${server.port}`,
    objects,
    seen,
    failWith(status) {
      failure = status
    },
    hang() {
      isHanging = true
    },
    stop: () => server.stop(true),
  }
}

function xml(text: string, status = 200): Response {
  const body = `<?xml version="1.0" encoding="UTF-8"?>${text}`
  return new Response(body, { status, headers: { 'content-type': 'application/xml' } })
}

function fault(status: number, code: string): Response {
  return xml(`<Error><Code>${code}</Code><Message>${code}</Message></Error>`, status)
}
