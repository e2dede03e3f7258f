import { systemClock, systemTimers } from '../base/clock.ts'
import { createBill } from './bill.ts'
import { type Calls, createCalls } from './calls.ts'
import { createMarkedCache } from './marked-cache.ts'
import type { Journal } from './memory/journal.ts'
import { recall } from './memory/recall.ts'
import type { SandboxModel } from './model.ts'
import { createPromptCache } from './prompt-cache.ts'
import type { Route, World } from './protocol.ts'
import { readBy } from './steering.ts'
import { videoTaskFamilies, mountsOf } from './vendors.ts'
import { createCallbacks } from './video/callbacks.ts'
import { createVideos } from './video/tasks.ts'

/** All vendors' simulators behind one address, with the bill and the memory they share. */
export type Simulators = {
  answer(request: Request, holdOpen: () => void): Promise<Response>
  serve(models: readonly SandboxModel[]): void
  stop(): void
}

/** The journal the simulators remember things in, and their own address. */
export type Memory = { readonly journal: Journal; readonly origin: string }

export function makeSimulators(models: readonly SandboxModel[], memory?: Memory): Simulators {
  const { lines, videos } = recall(memory?.journal, systemClock.now())
  const bill = createBill({ journal: memory?.journal, lines })
  const kept = memory && { ...memory, videos }
  let world: World = {
    models: byVendor(models),
    bill,
    cache: createPromptCache(),
    markedCache: createMarkedCache(),
    videos: createVideos({ clock: systemClock, timers: systemTimers, bill, callbacks: createCallbacks(), kept }),
  }
  // Videos begun before a restart continue now, and not only when they are first polled.
  for (const family of videoTaskFamilies) world.videos.of(family)
  const calls = createCalls()
  let routes = createRoutes(world)
  return {
    async answer(request, holdOpen) {
      const path = pathOf(request.url)
      if (path.startsWith('/__')) return answerControl(request, path, world, calls)
      const found = routes.find(path, request.method)
      if (!found) return unknownAddress(404, 'unknown_url', `Invalid URL (${request.method} ${path})`)
      const { vendor, route } = found
      if (request.method !== route.method) {
        return unknownAddress(405, 'method_not_supported', `Not allowed to ${request.method} on ${path}`)
      }
      const text = request.method === 'GET' ? '' : await readText(request)
      holdOpen()
      const { headers } = request
      const ref = headers.get('x-client-request-id')
      calls.add({ vendor, path, ref, headers, text })
      return route.answer({ vendor, path, request, text: readBy(vendor, text), ref })
    },
    serve(models) {
      world = { ...world, models: byVendor(models) }
      routes = createRoutes(world)
    },
    stop() {
      world.videos.stop()
      memory?.journal.close()
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

/** Whole paths are looked up in a map; the few routes with an open end are tried one after another. */
function createRoutes(world: World): { find(path: string, method: string): Found | undefined } {
  const exact = new Map<string, Found[]>()
  const open: (Found & { start: string })[] = []
  for (const vendor of world.models.keys()) {
    for (const { root, protocol } of mountsOf(vendor)) {
      for (const route of protocol(vendor, `/${vendor}${root}`, world)) {
        if (route.path.endsWith('/*')) open.push({ vendor, route, start: route.path.slice(0, -1) })
        else exact.set(route.path, [...(exact.get(route.path) ?? []), { vendor, route }])
      }
    }
  }
  function findOpen(path: string, method: string): Found | undefined {
    // Google reads a model and calls it at paths that begin alike, so the method decides.
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

/** Reads a form as Latin-1, one character per byte, because it holds files; anything else as UTF-8. */
async function readText(request: Request): Promise<string> {
  if (!request.headers.get('content-type')?.startsWith('multipart/')) return request.text()
  return Buffer.from(await request.arrayBuffer()).toString('latin1')
}

/** The path of an absolute URL. Parsing the whole URL costs more than answering some requests. */
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
