/**
 * The vendor simulator: real HTTP, the vendors' own wire protocols, and a bill of its own. It shares no codec and no
 * arithmetic with the gateway, since a mistake shared would be a mistake hidden.
 *
 * An answer is a function of the request alone: text, tool calls, ids and token counts are the same every time. Two
 * things vary: `created` comes from the clock, and a prompt of 1,024 tokens or more that the same key has sent to the
 * same model before is partly read from the prompt cache (Anthropic's: as far as the request marks it, for as long).
 *
 * Words in the last user text, or in the system text, steer it:
 *
 *   sandbox:fail=CODE       the vendor's error of that code        sandbox:status=N     that HTTP status
 *   sandbox:delay=MS        waits before the head                  sandbox:pace=MS      waits between chunks
 *   sandbox:cut=N           the connection dies after N chunks (a plain answer: mid body)
 *   sandbox:eof=N           a clean end after N chunks, no finish  sandbox:endless      never ends by itself
 *   sandbox:midstream-error an error event after 3 chunks          sandbox:malformed    one event is no JSON
 *   sandbox:tokens=N        so many tokens of content              sandbox:big=BYTES    one chunk of that size
 *   sandbox:usage=N         reports and bills N output tokens      sandbox:zero         uses and costs nothing
 *   sandbox:nousage         billed but not reported                sandbox:inline-usage usage in the finish chunk
 *   sandbox:charge-then-fail=STATUS  bills the answer, then fails  sandbox:leak         a refused key, repeated
 *   sandbox:html            200 with a page                        sandbox:error200     200 with an error body
 *   sandbox:gzip            a small body that unpacks to 100 MB    sandbox:headers      cookies and 50 odd headers
 *   sandbox:drip=BYTES      writes of that size                    sandbox:crlf         CRLF, comments, no space
 *   sandbox:dated           a dated id as `model`                  sandbox:unicode      emoji, CJK, combining marks
 *   sandbox:tool=NAME       calls that tool
 *
 * Anthropic's protocol alone knows:
 *
 *   sandbox:redacted        a thought that nobody may read         sandbox:refusal      stops with `refusal`
 *   sandbox:pause           stops with `pause_turn`                sandbox:no-events    a stream without `event:` lines
 *   sandbox:start-usage     usage in message_start alone           sandbox:double-start message_start comes twice
 *
 * Google's protocol alone knows, beside `refusal`, which ends with SAFETY:
 *
 *   sandbox:blocked         a blocked prompt, no candidates        sandbox:finish=NAME  ends with that finishReason
 *   sandbox:error-array     an error before events is an array
 *
 * Pictures, speech and embeddings are steered by their prompt, text or inputs. There `usage=N` is N of what is sold:
 * tokens, characters or pictures; what is sent in pieces is charged whole once a piece has gone out; and they know:
 *
 *   sandbox:expired         links whose time is over already       sandbox:fail-image=N the Nth of several fails
 *
 * Videos are tasks: 50 ms in the queue, 150 ms in the making, then billed if they succeed, else not. There `fail=CODE`
 * fails the task, not its creation; whatever happens to the answer, a task that was made goes on and is billed, so also
 * with `delay`, `cut` and `charge-then-fail`. Video alone knows:
 *
 *   sandbox:queued=MS       waits so long in the queue             sandbox:slow=MS      runs so long
 *   sandbox:stuck           runs and never ends                    sandbox:expire       Ark: ends as `expired`
 *   sandbox:lost            made, but the connection is cut        sandbox:vanish       nobody knows the task; free
 *   sandbox:odd-state=WORD  that word as its state for a while      sandbox:seconds=N    really lasts so long
 *   sandbox:poll-status=N   that status to the first two polls     sandbox:no-video     succeeds without a link
 *   sandbox:no-callback     tells nobody                           sandbox:double-callback  tells everything twice
 *
 * For Veo `blocked` is a filtered video: done, without samples and without a charge.
 *
 * Beside the vendors: `GET /__bill` (`?ref=` for one call), `GET /__calls` (`?count` for their
 * number alone), and DELETE on either to clear it.
 */
import { systemClock, systemTimers } from '../base/clock.ts'
import { listen } from '../base/listen.ts'
import { createBill } from './bill.ts'
import { type Calls, createCalls } from './calls.ts'
import { createMarkedCache } from './marked-cache.ts'
import type { SandboxModel } from './model.ts'
import { createPromptCache } from './prompt-cache.ts'
import type { Route, World } from './protocol.ts'
import { layoutOf } from './vendors.ts'
import { createCallbacks } from './video/callbacks.ts'
import { createVideos } from './video/tasks.ts'

export type { SandboxModel } from './model.ts'

export type SandboxOptions = { hostname?: string; port: number; models: readonly SandboxModel[] }

export type Sandbox = {
  readonly url: string
  readonly port: number
  /** What the vendor's official SDK would call its base address. */
  baseUrl(vendor: string): string
  /** Sells other models from now on; the bill and the caches stay. */
  serve(models: readonly SandboxModel[]): void
  stop(): Promise<void>
}

// Room for a request full of images.
const bodyBytesMax = 256 * 1024 * 1024

export function startSandbox({ hostname = '127.0.0.1', port, models }: SandboxOptions): Sandbox {
  const bill = createBill()
  let world: World = {
    models: byVendor(models),
    bill,
    cache: createPromptCache(),
    markedCache: createMarkedCache(),
    videos: createVideos({ clock: systemClock, timers: systemTimers, bill, callbacks: createCallbacks() }),
  }
  const calls = createCalls()
  let routes = createRoutes(world)
  const listener = listen({
    hostname,
    port,
    bodyBytesMax,
    async fetch(request, connection) {
      const path = pathOf(request.url)
      if (path.startsWith('/__')) return answerControl(request, path, world, calls)
      const found = routes.find(path, request.method)
      if (!found) return unknownAddress(404, 'unknown_url', `Invalid URL (${request.method} ${path})`)
      const { vendor, route } = found
      if (request.method !== route.method) {
        return unknownAddress(405, 'method_not_supported', `Not allowed to ${request.method} on ${path}`)
      }
      const text = request.method === 'GET' ? '' : await readText(request)
      connection.holdOpen()
      const { headers } = request
      const ref = headers.get('x-client-request-id')
      calls.add({ vendor, path, ref, headers, text })
      return route.answer({ vendor, path, request, text, ref })
    },
  })
  return {
    url: listener.url,
    port: listener.port,
    baseUrl: (vendor) => `${listener.url}/${vendor}${layoutOf(vendor).base}`,
    serve(models) {
      world = { ...world, models: byVendor(models) }
      routes = createRoutes(world)
    },
    stop() {
      world.videos.stop()
      // What still streams may never end by itself.
      return listener.stop(true)
    },
  }
}

function byVendor(models: readonly SandboxModel[]): World['models'] {
  const vendors = new Map<string, Map<string, SandboxModel>>()
  for (const model of models) {
    const known = vendors.get(model.vendor) ?? new Map<string, SandboxModel>()
    vendors.set(model.vendor, known.set(model.model, model))
  }
  return vendors
}

type Found = { vendor: string; route: Route }

/** Whole paths are looked up; the few that take a tail are tried one after another. */
function createRoutes(world: World): { find(path: string, method: string): Found | undefined } {
  const exact = new Map<string, Found[]>()
  const open: (Found & { start: string })[] = []
  for (const vendor of world.models.keys()) {
    for (const { root, protocol } of layoutOf(vendor).mounts) {
      for (const route of protocol(vendor, `/${vendor}${root}`, world)) {
        if (route.path.endsWith('/*')) open.push({ vendor, route, start: route.path.slice(0, -1) })
        else exact.set(route.path, [...(exact.get(route.path) ?? []), { vendor, route }])
      }
    }
  }
  function findOpen(path: string, method: string): Found | undefined {
    // Google reads a model and calls it at addresses that begin alike.
    return byMethod(
      open.filter(({ start }) => path.startsWith(start)),
      method,
    )
  }
  return { find: (path, method) => byMethod(exact.get(path) ?? [], method) ?? findOpen(path, method) }
}

function byMethod(fitting: readonly Found[], method: string): Found | undefined {
  return fitting.find(({ route }) => route.method === method) ?? fitting[0]
}

/** A form holds files, so its text is one character a byte; anything else is UTF-8. */
async function readText(request: Request): Promise<string> {
  if (!request.headers.get('content-type')?.startsWith('multipart/')) return request.text()
  return Buffer.from(await request.arrayBuffer()).toString('latin1')
}

/** The path of an absolute URL; parsing it whole costs more than answering some requests. */
function pathOf(url: string): string {
  const start = url.indexOf('/', url.indexOf('//') + 2)
  const end = url.indexOf('?', start)
  return end < 0 ? url.slice(start) : url.slice(start, end)
}

function answerControl(request: Request, path: string, { bill }: World, calls: Calls): Response {
  const record = path === '/__bill' ? bill : path === '/__calls' ? calls : undefined
  if (!record) return unknownAddress(404, 'unknown_url', `Invalid URL (${request.method} ${path})`)
  if (request.method === 'DELETE') {
    record.clear()
    return new Response(null, { status: 204 })
  }
  const { searchParams } = new URL(request.url)
  if (record === calls)
    return Response.json(searchParams.has('count') ? { count: calls.count } : { data: calls.list() })
  return Response.json({ data: bill.lines(searchParams.get('ref') ?? undefined) })
}

function unknownAddress(status: number, code: string, message: string): Response {
  return Response.json({ error: { message, type: 'invalid_request_error', param: null, code } }, { status })
}
