import { badRequest, GatewayError } from '../../src/base/errors.ts'
import type { Call, VideoAdapter, Vendor } from '../../src/vendors/vendor.ts'
import type { Sent, Transport } from '../../src/upstream/transport.ts'
import { scriptedExchange } from './scripted-exchange.ts'

/** A task as the vendor has it. */
export type VendorTask = { id: string; ref: string; word: string; body: unknown; polls: number }

/** What the vendor does with the next creations. After those it just makes the videos. */
export type Trick =
  | 'unsent' // the connection is refused
  | 'drop' // the connection breaks, and no task was created
  | 'lose' // the task is created, but the answer gets lost
  | 'cut' // the task is created, but its answer breaks off after the status
  | { readonly status: number; readonly makes?: boolean; /** The body's own status. */ readonly errorStatus?: number }
  | { readonly status: 200; readonly makes: true; /** The id that the task gets. */ readonly id: string }

/** A vendor of videos in memory. A test sets the state of its tasks, and it records the calls it receives. */
export type VideoVendor = {
  readonly vendor: Vendor
  readonly transport: Transport
  readonly tasks: Map<string, VendorTask>
  readonly tricks: Trick[]
  /** Statuses for the next polls, one for each, instead of the task's state; 0 breaks the connection. */
  readonly polls: number[]
  /** The same for searches by our reference. */
  readonly searches: (number | 'unreadable')[]
  /** The same for cancellations. */
  readonly cancellations: number[]
  /** The same for uploads of images; 0 breaks the connection. */
  readonly pictures: (number | 'unreadable')[]
  /** The same for requests that locate a video, where its record does not hold the link. */
  readonly files: (number | 'nowhere')[]
  /** The same for downloads of videos. */
  readonly films: number[]
  readonly calls: { readonly method: string; readonly path: string }[]
  /** Our references on its calls. */
  readonly refs: Set<string | undefined>
  /** Sets the state of every task. */
  become(word: string): void
  seconds: number
  /** False: the vendor keeps no list to find tasks in. */
  finds: boolean
  /** False: the vendor reports no usage. */
  counts: boolean
  onlyWithKey: boolean
  /** Its records name a file, whose link needs a further request. */
  locates: boolean
  /** Its errors come with status 200. */
  hidesErrors: boolean
  /** Images must be uploaded before an order can refer to them. */
  wantsPictures: boolean
  /** When the vendor says that it made its videos, if it says so. */
  madeAt: number | undefined
  /** An upstream model for which no order can be written. */
  cannotExpress: string | undefined
}

const base = 'https://films.example'

export function videoVendor(id = 'films'): VideoVendor {
  const tasks = new Map<string, VendorTask>()
  const world: Omit<VideoVendor, 'vendor' | 'transport'> = {
    tasks,
    tricks: [],
    polls: [],
    searches: [],
    cancellations: [],
    pictures: [],
    files: [],
    films: [],
    calls: [],
    refs: new Set(),
    become(word) {
      for (const task of tasks.values()) task.word = word
    },
    seconds: 5,
    finds: true,
    counts: true,
    onlyWithKey: false,
    locates: false,
    hidesErrors: false,
    wantsPictures: false,
    madeAt: undefined,
    cannotExpress: undefined,
  }
  const made: VideoVendor = Object.assign(world, {
    transport: { send: (call: Call) => Promise.resolve(answer(world, call)) },
    vendor: vendorOf(id, world),
  })
  return made
}

type World = Omit<VideoVendor, 'vendor' | 'transport'>

const states = {
  queued: 'submitted',
  running: 'running',
  done: 'succeeded',
  empty: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
  expired: 'expired',
  gone: 'lost',
} as const

function vendorOf(id: string, world: World): Vendor {
  const get = (path: string, method: Call['method'] = 'GET'): Call => ({ method, url: base + path, headers: {} })
  const adapter: VideoAdapter = {
    fetches: ({ media }) => (world.wantsPictures ? [] : media.map(({ url }) => url)),
    upload: {
      calls: ({ media }) =>
        world.wantsPictures ? media.map(({ url }) => ({ url: `${base}/pictures`, headers: {}, body: url })) : [],
      read(response) {
        const { picture, errorStatus } = parse(response.body) as { picture?: string; errorStatus?: number }
        if (errorStatus !== undefined) return { errorStatus }
        if (picture === undefined) throw new GatewayError('upstream-failed', 'This is no answer.')
        return picture
      },
    },
    create(ask, { ref, callbackUrl, upstreamModel, uploaded = [] }) {
      if (upstreamModel === world.cannotExpress) throw badRequest('This model has no such parameter.', 'parameters')
      return {
        url: `${base}/tasks`,
        headers: {},
        body: JSON.stringify({ ref, prompt: ask.prompt, callbackUrl, ...(uploaded.length > 0 && { uploaded }) }),
      }
    },
    readCreated({ body }) {
      const { id: own, errorStatus } = parse(body) as { id?: string; errorStatus?: number }
      if (errorStatus !== undefined) return { errorStatus }
      if (own === undefined) throw new GatewayError('upstream-failed', 'This is no answer.')
      return own
    },
    statusOf: ({ status, body }) => (parse(body) as { errorStatus?: number }).errorStatus ?? status,
    poll: (upstreamId) => get(`/tasks/${upstreamId}`),
    readTask({ body }, facts) {
      const { word, id: own } = parse(body) as { word: string; id: string }
      const made = { needsKey: world.onlyWithKey, seed: 7, ...(world.madeAt && { madeAt: world.madeAt }) }
      const state = word in states ? states[word as keyof typeof states] : 'unknown-word'
      return {
        state,
        word,
        record: { native: { word, id: own, link: linkOf(own) } },
        ...(word === 'done' && !world.locates && { result: { ...made, videoUrl: linkOf(own) } }),
        ...((word === 'done' || word === 'empty') &&
          world.counts && { used: { video: { seconds: world.seconds, resolution: facts.resolution } } }),
        ...(word === 'failed' && { error: { code: 'Unsuitable', message: 'It cannot be shown.' } }),
      }
    },
    locate: {
      call: ({ native }) => (world.locates ? get(`/files/${(native as { id: string }).id}`) : undefined),
      read({ status, body }) {
        if (status !== 200) throw new GatewayError('upstream-failed', 'This is no file.')
        const { url } = parse(body) as { url?: string }
        return url === undefined ? undefined : { videoUrl: url, needsKey: world.onlyWithKey }
      },
    },
    cancel: {
      call: (upstreamId) => get(`/tasks/${upstreamId}`, 'DELETE'),
      read: ({ status }) => status === 200,
    },
    find: {
      call: ({ ref }) => get(`/find?ref=${ref}`),
      read({ body }) {
        const { id: found } = parse(body) as { id?: string | null }
        if (!world.finds) return 'unsure'
        if (found === undefined) throw new GatewayError('upstream-failed', 'This is no answer.')
        return found === null ? 'absent' : { upstreamId: found }
      },
    },
  }
  return {
    id,
    baseUrl: base,
    environment: [],
    hangup: 'stop',
    local: false,
    video: adapter,
    explain({ status: plain, body }) {
      const { errorStatus: status = plain } = parse(Buffer.from(body)) as { errorStatus?: number }
      // With either status the vendor says that it has no capacity and has not begun anything.
      const isFull = status === 429 || status === 503
      const isKeyRefused = status === 401
      const isRejected = status < 500 && !isFull && !isKeyRefused
      const kind = isFull ? 'too-many' : isRejected ? 'upstream-rejected' : 'upstream-failed'
      const refusal = isRejected ? { protocol: 'films', status, body: '{}' } : undefined
      return {
        error: new GatewayError(kind, `The vendor says ${status}.`, { ...(refusal && { refusal }) }),
        retryable: !isRejected,
        ...((isFull || isKeyRefused) && { restCredentialSeconds: 30 }),
      }
    },
  }
}

export function linkOf(id: string): string {
  return `${base}/results/${id}.mp4`
}

function parse(body: Uint8Array): unknown {
  return JSON.parse(new TextDecoder().decode(body))
}

function answer(world: World, call: Call): Sent {
  const { method = 'POST' } = call
  const path = call.url.slice(base.length)
  world.calls.push({ method, path })
  world.refs.add(call.headers['x-client-request-id'])
  if (path === '/tasks' && method === 'POST') return create(world, call)
  if (path.startsWith('/find')) {
    const trouble = world.searches.shift()
    if (trouble === 0) return broken('unknown')
    if (trouble === 'unreadable') return respond(200, {})
    if (trouble !== undefined) return refuse(world, trouble)
    const ref = path.slice('/find?ref='.length)
    return respond(200, { id: [...world.tasks.values()].find((task) => task.ref === ref)?.id ?? null })
  }
  if (path === '/pictures') return takeImage(world, call)
  if (path.startsWith('/results/')) return download(world, path)
  if (path.startsWith('/files/')) return locate(world, path.slice('/files/'.length))
  const task = world.tasks.get(path.slice('/tasks/'.length))
  if (method === 'DELETE') {
    const trouble = world.cancellations.shift()
    if (trouble === 0) return broken('unknown')
    if (trouble !== undefined) return refuse(world, trouble)
    if (task?.word !== 'queued') return respond(409, {})
    task.word = 'cancelled'
    return respond(200, {})
  }
  const trouble = world.polls.shift()
  if (trouble === 0) return broken('unknown')
  if (trouble !== undefined) return refuse(world, trouble)
  if (task === undefined) return respond(200, { id: '', word: 'gone' })
  task.polls++
  return respond(200, { id: task.id, word: task.word })
}

function takeImage(world: World, { body }: Call): Sent {
  const trouble = world.pictures.shift()
  if (trouble === 0) return broken('unknown')
  if (typeof trouble === 'number') return refuse(world, trouble)
  return respond(200, trouble === undefined ? { picture: `the picture of ${body as string}` } : {})
}

function locate(world: World, id: string): Sent {
  const trouble = world.files.shift()
  if (trouble === 'nowhere') return respond(200, {})
  if (trouble === 0) return broken('unknown')
  return trouble === undefined ? respond(200, { url: linkOf(id) }) : refuse(world, trouble)
}

function refuse({ hidesErrors }: World, status: number): Sent {
  const body = { id: 'x', word: 'queued' }
  return hidesErrors ? respond(200, { ...body, errorStatus: status }) : respond(status, body)
}

let made = 0

function create(world: World, call: Call): Sent {
  const trick = world.tricks.shift()
  if (trick === 'unsent') return broken('unsent')
  if (trick === 'drop') return broken('unknown')
  const isMade = typeof trick !== 'object' || trick.makes === true
  const id = `up-${++made}`
  if (isMade) {
    const body = JSON.parse(call.body as string) as { ref: string }
    world.tasks.set(id, { id, ref: body.ref, word: 'queued', body, polls: 0 })
  }
  if (trick === 'lose') return broken('unknown')
  if (trick === 'cut') {
    return { kind: 'response', exchange: scriptedExchange(200, ['{"id":', new Error('The connection broke.')]) }
  }
  if (typeof trick !== 'object') return respond(200, { id })
  return respond(trick.status, 'id' in trick ? { id: trick.id } : { errorStatus: trick.errorStatus })
}

function broken(delivery: 'unsent' | 'unknown'): Sent {
  return { kind: 'failed', delivery, error: new GatewayError('upstream-failed', 'The connection broke.') }
}

/** A film comes in pieces. */
function download(world: World, path: string): Sent {
  const status = world.films.shift() ?? 200
  return { kind: 'response', exchange: scriptedExchange(status, ['the film of ', path]) }
}

function respond(status: number, body: unknown): Sent {
  return { kind: 'response', exchange: scriptedExchange(status, [JSON.stringify(body)]) }
}
