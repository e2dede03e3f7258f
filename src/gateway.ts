import packageJson from '../package.json'
import { makeOperators } from './admin/operators.ts'
import { makeAdminRoutes, type AdminParts } from './admin/routes.ts'
import { openArtifacts, type Artifacts } from './artifacts/artifacts.ts'
import { makeRanges } from './base/address-ranges.ts'
import { Closing } from './base/closing.ts'
import { Deadlines } from './base/deadlines.ts'
import type { GatewayError } from './base/errors.ts'
import { makeGuardedFetch } from './base/guarded-fetch.ts'
import type { Listener } from './base/listen.ts'
import { labelBy, macFor } from './base/secret.ts'
import type { Books } from './books.ts'
import { exampleOf } from './catalogue/model.ts'
import type { ConfigFile } from './config/file.ts'
import { callTimeouts, clientTimeouts, taskTimeouts } from './config/timeouts.ts'
import { makeCors } from './edge/cors.ts'
import { makeEdge } from './edge/edge.ts'
import { Waiting } from './edge/waiting.ts'
import { makeAdmit } from './flow/admit.ts'
import { makeAuthenticate } from './flow/authenticate.ts'
import { makeCall } from './flow/call.ts'
import { makeCount } from './flow/chat/count.ts'
import { Drains } from './flow/drains.ts'
import { makeLimit } from './flow/limit.ts'
import { makeMeter } from './flow/meter.ts'
import { makeOnce } from './flow/once.ts'
import { makeRelease } from './flow/release.ts'
import { makeRoute } from './flow/route.ts'
import type { Line } from './flow/run.ts'
import { openFoundation, type GatewayOptions, type OpenedFoundation } from './foundation.ts'
import type { Readiness } from './http/health.ts'
import { makeRoutes } from './http/routes.ts'
import { beingStopped, giveNotice, stopListening } from './http/stopping.ts'
import { Idempotency } from './idempotency/idempotency.ts'
import { ensureFirstAccount, recordSecretChange, type FirstStart } from './keys/first-start.ts'
import { KeyRing } from './keys/key-ring.ts'
import { makeLimiter } from './limits/limiter.ts'
import { offerLocalModels, type Market } from './market.ts'
import { openMcp, type OpenMcp, type OpenMcpParts } from './mcp/open.ts'
import { makeMp3Encoders } from './media/mp3.ts'
import type { Store } from './store/open.ts'
import type { Mode } from './store/schema.ts'
import { makeCallbacks } from './tasks/callbacks.ts'
import { openTasks, type Tasks } from './tasks/tasks.ts'
import { openWebhooks, webhookPolicy, type Webhooks } from './tasks/webhooks/webhooks.ts'
import type { Channel } from './upstream/channels.ts'
import { makeFetchLink } from './upstream/links.ts'
import { nobodyServes } from './upstream/nobody-serves.ts'
import { makeOwnLinks } from './upstream/own-links.ts'
import { makeTransport } from './upstream/transport.ts'
import { videoCodec } from './wire/native/video.ts'
import { writeError } from './wire/openai/errors.ts'

export type Gateway = {
  readonly url: string
  /** The operator's API. */
  readonly adminUrl: string
  /** The tool server. */
  readonly mcpUrl: string
  readonly mode: Mode
  readonly sandboxUrl: string | undefined
  readonly firstStart: FirstStart
  /** The models that are on offer at the start. */
  readonly models: Market['current']['models']
  /** A chat model to try the gateway with, if it serves any. */
  readonly exampleModel: string | undefined
  /** Why there is no model at all, if so; a reload may change it. */
  readonly whyEmpty: string | undefined
  readonly store: Store
  readonly artifacts: Artifacts
  readonly tasks: Tasks
  readonly openHolds: () => number
  /** Brings the database up to date with all that has been charged, and gives back leases that are not in use. */
  settleBooks(): Promise<void>
  /** Takes a new file into use; throws, and changes nothing, where it cannot be read or is not valid. */
  reload(read: () => ConfigFile): void
  /** Stops gently: no new requests, those in flight to their end or to the deadline, then every hold ended. */
  close(options?: { readonly drainMs?: number }): Promise<void>
}

/** The order in which everything that is open closes: after the requests of a stop, and where a start fails. */
const closingOrder = [
  // No request comes in any more.
  'tool port',
  'tools',
  'public port',
  'admin port',
  // Nothing goes on in the background any more.
  'tasks',
  'webhooks',
  'answers',
  'artifacts',
  'mp3',
  'keys',
  'prices',
  'telemetry',
  'tidying',
  // What was charged is posted. The lock is last: another process may use the folder once nothing here writes any more.
  'billing',
  'store',
  'simulators',
  'lock',
] as const

type Steps = Closing<(typeof closingOrder)[number]>

/** The composition root: configuration in, a running gateway out. A start that fails leaves nothing open. */
export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const closing: Steps = new Closing(closingOrder)
  try {
    return await build(options, closing)
  } catch (thrown) {
    await closing.close().catch((cause: unknown) => {
      options.log.error({ cause: String(cause) }, 'what the failed start had opened could not be closed')
    })
    throw thrown
  }
}

/** Builds in order: what everything stands on, the line, what is served at the ports, and how all of it stops. */
async function build(options: GatewayOptions, closing: Steps): Promise<Gateway> {
  const foundation = { ...(await openFoundation(options, closing)), closing }
  const { environment, settings, log, store, mode, market, books, secretKeys, models, tally } = foundation
  const { listener } = foundation.publicPort
  const webhooks = openWebhooks({ ...foundation, settings: settings.webhooks })
  const stop: Stop = { isDraining: false, deliverMs: undefined, links: new AbortController() }
  closing.opened('webhooks', () => webhooks.close({ withinMs: stop.deliverMs ?? 0 }))
  const stopping = stop.links.signal
  const isDraining = () => stop.isDraining
  const memory = openMemory(foundation)
  const calling = makeCalling(foundation)
  const line = makeLine(foundation, memory, calling, stopping)
  const tasks = openVideoTasks(foundation, memory, calling, () => webhooks.wake())
  const readiness = () => notReady(books, market, stop)
  const routes = makePublicRoutes({ ...foundation, ...memory, calling, line, tasks, webhooks, readiness })
  const waiting = new Waiting()
  const operatorsEdge = { writeError, isProxy: makeRanges(settings.trustedProxies), log, tally }
  const edge = { ...operatorsEdge, waiting, isDraining }
  const cors = makeCors(settings.cors.origins)
  const { hurried } = tasks
  const mcp = openTools({ ...foundation, ...memory, calling, line, routes, edge, cors, waiting, stopping, hurried })
  if (await recordSecretChange(store, secretKeys)) log.warn({}, otherSecret)
  // The last step that may fail, because a first key is shown only once.
  const firstStart = await ensureFirstAccount({ ...environment, store, secretKeys, mode })
  foundation.publicPort.serve(makeEdge({ ...edge, routes: [...routes, ...mcp.publicRoutes], cors }))
  const admin = makeOperatorsRoutes({ ...foundation, ...memory, webhooks, tasks, isDraining })
  foundation.operatorsPort.serve(makeEdge({ ...operatorsEdge, routes: admin, cors: undefined }))
  market.warmUp()
  // Not awaited: models of local servers are served from the moment they are found.
  if (mode === 'real') void offerLocalModels(listener.port, calling.transport, market, options)

  return {
    url: listener.url,
    adminUrl: foundation.operatorsPort.listener.url,
    mcpUrl: mcp.url,
    mode,
    sandboxUrl: market.sandboxUrl,
    firstStart,
    models: models(),
    exampleModel: exampleOf(models()),
    get whyEmpty() {
      return market.current.whyEmpty
    },
    store,
    artifacts: memory.artifacts,
    tasks,
    openHolds: () => books.billing.open,
    settleBooks: () => books.post(),
    reload(read) {
      try {
        market.reload(read())
        tally.reloaded('accepted')
      } catch (thrown) {
        tally.reloaded('rejected')
        throw thrown
      }
    },
    async close({ drainMs = 0 } = {}) {
      const listeners = mcp.listener === undefined ? [listener] : [listener, mcp.listener]
      await stopGently({ ...foundation, stop, listeners, waiting, calling, tasks, webhooks }, drainMs)
      await closing.close()
    },
  }
}

type Foundation = OpenedFoundation & { readonly closing: Steps }

/** What is remembered between requests: keys that were looked up, results, and answers under an Idempotency-Key. */
function openMemory(foundation: Foundation) {
  const { environment, settings, secret, closing } = foundation
  const { authFailuresPerMinute } = settings.limits
  const keyRing = new KeyRing({ ...foundation, authFailuresPerMinute })
  closing.opened('keys', () => keyRing.close())
  const artifacts = openArtifacts({
    ...foundation,
    settings: settings.artifacts,
    dataFolder: environment.dataFolder,
    mac: macFor(secret, 'artifact-link'),
  })
  closing.opened('artifacts', () => artifacts.close())
  const idempotency = new Idempotency({ ...foundation, longAnswers: artifacts })
  closing.opened('answers', () => idempotency.close())
  return { keyRing, artifacts, idempotency }
}

type Memory = ReturnType<typeof openMemory>

/** How the outside world is called: vendors, and the URLs that clients give. */
function makeCalling({ settings, secret, clock, channels, market, publicUrl }: Foundation) {
  const isOwnLink = makeOwnLinks({ simulators: market.sandboxUrl, publicUrl })
  return {
    transport: makeTransport(clock),
    /** For video tasks. A stop ends other calls but not these, or the id of a video in the making would be lost. */
    taskTransport: makeTransport(clock),
    channels,
    timeouts: callTimeouts(settings.timeouts),
    tenantLabel: labelBy(macFor(secret, 'tenant-label')),
    isOwnLink,
    guardedFetch: makeGuardedFetch({ isOwn: isOwnLink }),
  }
}

type Calling = ReturnType<typeof makeCalling>

/** The stages of the straight line, each bound to its dependencies. */
function makeLine(foundation: Foundation, memory: Memory, calling: Calling, stopping: AbortSignal): Line {
  const { settings, clock, log, tally, channels, models, books } = foundation
  const { attemptsMax } = settings.limits
  return {
    authenticate: makeAuthenticate(memory.keyRing),
    limit: makeLimit(makeLimiter(clock)),
    once: makeOnce({ idempotency: memory.idempotency, log }),
    admit: makeAdmit({ models, billing: books.billing, totalMs: calling.timeouts.whole.totalMs }),
    route: makeRoute({ channels, clock, attemptsMax }),
    noRoute({ ask: { model }, model: { offers }, errand }, passedOver) {
      const isServedBy = ({ vendor }: Channel) => errand.isServedBy(vendor)
      return nobodyServes(channels(), { model, offers, isServedBy }, passedOver)
    },
    call: makeCall({ ...calling, fetchLink: makeFetchLink(calling.guardedFetch, stopping), stopping, log }),
    meter: makeMeter({
      log,
      drains: new Drains(),
      deadlines: new Deadlines(clock),
      timeouts: clientTimeouts(settings.timeouts),
    }),
    release: makeRelease(log, tally),
  }
}

function openVideoTasks(
  foundation: Foundation,
  { artifacts }: Memory,
  calling: Calling,
  wakeWebhooks: () => void,
): Tasks {
  const { settings, mode, secret, books, publicPort, closing } = foundation
  // Vendors cannot reach an address of this machine; simulators can.
  const callbackUrl = settings.publicUrl ?? (mode === 'sandbox' ? publicPort.listener.url : undefined)
  const tasks = openTasks({
    ...foundation,
    ...calling,
    transport: calling.taskTransport,
    random: Math.random,
    fetchLink: makeFetchLink(calling.guardedFetch),
    timeouts: taskTimeouts(calling.timeouts.whole),
    pace: { pollMs: settings.tasks.pollSeconds * 1000, doubtMs: settings.tasks.doubtSeconds * 1000 },
    keepMs: settings.tasks.keepDays * 24 * 60 * 60_000,
    attemptsMax: settings.limits.attemptsMax,
    callbacks: callbackUrl === undefined ? undefined : makeCallbacks(macFor(secret, 'video-callback'), callbackUrl),
    keepResult: (result, about) => artifacts.keep(result, about),
    keepsAll: artifacts.keepsAll,
    reserve: books.reserve,
    giveBackLeases: books.recall,
    wakeWebhooks,
  })
  closing.opened('tasks', () => tasks.close())
  return tasks
}

type Served = Foundation & Memory & { readonly calling: Calling; readonly line: Line }

function makePublicRoutes(
  served: Served & { readonly tasks: Tasks; readonly webhooks: Webhooks; readonly readiness: Readiness },
) {
  const { settings, mode, clock, log, line, calling, books, models, webhooks, closing } = served
  const { isOwnLink } = calling
  const mp3 = makeMp3Encoders()
  closing.opened('mp3', () => mp3.stop())
  const webhookRules = webhookPolicy(mode, settings.webhooks)
  return makeRoutes({
    ...served,
    ...settings.limits,
    isOwnLink,
    namedUrl: settings.publicUrl,
    bringUpToDate: books.bringUpToDate,
    heldHere: books.heldHere,
    mp3,
    readAsk: (asked, lookUp) => videoCodec.readAsk(asked, lookUp, webhookRules, isOwnLink),
    checkWebhook: (url, signal) => webhooks.checkUrl(url, signal),
    count: makeCount({
      ...calling,
      log,
      authenticate: (received) => line.authenticate(received),
      once: (limited, walk) => line.once(limited, walk),
      limiter: makeLimiter(clock),
      models,
    }),
  })
}

function openTools(
  served: Served & Pick<OpenMcpParts, 'routes' | 'edge' | 'cors' | 'waiting' | 'stopping' | 'hurried'>,
): OpenMcp {
  const { environment, settings, secret, clock, publicPort, calling } = served
  const { port, url } = publicPort.listener
  return openMcp({
    ...served,
    version: packageJson.version,
    port: settings.mcp.port,
    at: { hostname: environment.host, port, url },
    allowed: { publicUrl: settings.publicUrl, hosts: settings.mcp.hosts, origins: settings.cors.origins },
    guardedFetch: calling.guardedFetch,
    limiter: makeLimiter(clock),
    sessionMac: macFor(secret, 'tool-session'),
    bodyBytesMax: settings.limits.mcpBodyBytesMax,
  })
}

function makeOperatorsRoutes(served: Foundation & Memory & Pick<AdminParts, 'tasks' | 'webhooks' | 'isDraining'>) {
  const { environment, settings, books, market } = served
  return makeAdminRoutes({
    ...served,
    operators: makeOperators({ ...served, ...settings.limits, metricsKey: environment.metricsKey }),
    bringUpToDate: books.bringUpToDate,
    unsold: () => market.current.unsold(),
  })
}

const otherSecret =
  'the last start on this database used a different TURNPIKE_SECRET: keys made under it do not work here, and all nodes need the same one'

async function notReady(books: Books, market: Market, { isDraining }: Stop): Promise<readonly string[]> {
  if (isDraining) return ['draining']
  const reasons: string[] = []
  const { whyEmpty } = market.current
  if (whyEmpty !== undefined) reasons.push(`there is no model to serve: ${whyEmpty}`)
  await books.store.ping().catch(() => reasons.push('the database does not answer'))
  const trouble = books.trouble()
  if (trouble !== undefined) reasons.push(trouble)
  return reasons
}

/** How far a stop has come. */
type Stop = {
  isDraining: boolean
  /** How long webhooks may still be delivered. */
  deliverMs: number | undefined
  /** Ends the fetching of links. */
  readonly links: AbortController
}

type Running = Foundation & {
  readonly stop: Stop
  readonly listeners: readonly Listener[]
  readonly waiting: Waiting
  readonly calling: Calling
  readonly tasks: Tasks
  readonly webhooks: Webhooks
}

/** Ends all requests, those in flight at their own end or at the deadline. */
async function stopGently(running: Running, drainMs: number): Promise<void> {
  const { stop, listeners, waiting, calling, tasks, webhooks, books } = running
  const isSecond = stop.isDraining
  stop.isDraining = true
  // Of two stops, the shorter time counts, whichever of them closes the webhooks first.
  stop.deliverMs = Math.min(stop.deliverMs ?? drainMs, drainMs)
  tasks.hurry()
  await giveNotice(drainMs)
  const links = { stop: (reason: GatewayError) => stop.links.abort(reason) }
  const waitedFor = [calling.transport, links, tasks]
  await stopListening({ listeners, billing: books.billing, waitedFor, waiting }, drainMs)
  // A second stop is in a hurry, and does not wait for the calls that the first one lets finish. Videos whose id at
  // the vendor is not known then are looked for by the next process.
  if (!isSecond) return
  calling.taskTransport.stop(beingStopped())
  await webhooks.close({ withinMs: drainMs })
}
