import { makeOperators } from './admin/operators.ts'
import { makeAdminRoutes } from './admin/routes.ts'
import { showModel } from './admin/show-model.ts'
import { makeGuardedFetch } from './base/guarded-fetch.ts'
import { openArtifacts, type Artifacts } from './artifacts/artifacts.ts'
import { systemClock, systemTimers, type Clock } from './base/clock.ts'
import { Deadlines } from './base/deadlines.ts'
import { listen, type Listener } from './base/listen.ts'
import type { Log } from './base/log.ts'
import { labelBy, macFor } from './base/secret.ts'
import type { TrackedBilling } from './billing/open-holds.ts'
import { openBooks, type Books, type BooksOptions } from './books.ts'
import type { Environment } from './config/environment.ts'
import type { ConfigFile } from './config/file.ts'
import { installationSecret } from './config/installation-secret.ts'
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
import type { Parts } from './flow/run.ts'
import { makeCors } from './edge/cors.ts'
import { makeEdge, type Serve } from './edge/edge.ts'
import { makeRoutes } from './http/routes.ts'
import { makeIdempotency } from './idempotency/idempotency.ts'
import { serveWhileStarting } from './http/starting.ts'
import { ensureFirstAccount, type FirstStart } from './keys/first-start.ts'
import { KeyRing } from './keys/key-ring.ts'
import { makeSecretKeys } from './keys/secret-keys.ts'
import { makeLimiter } from './limits/limiter.ts'
import { makeMarket, type Market } from './market.ts'
import { openMcp } from './mcp/open.ts'
import { makeMp3Encoders } from './media/mp3.ts'
import packageJson from '../package.json'
import { anyAccount } from './store/accounts.ts'
import type { Store } from './store/open.ts'
import type { Mode } from './store/schema.ts'
import { makeCallbacks } from './tasks/callbacks.ts'
import { openTasks, type Tasks } from './tasks/tasks.ts'
import { openWebhooks, webhookPolicy } from './tasks/webhooks/webhooks.ts'
import { discoverLocalServers } from './upstream/discover.ts'
import { makeFetchLink } from './upstream/links.ts'
import { makeTransport, type Timeouts } from './upstream/transport.ts'
import { videoCodec } from './wire/native/video.ts'
import { writeError } from './wire/openai/errors.ts'

export type GatewayOptions = {
  readonly environment: Environment
  readonly file: ConfigFile
  /** Where vendors' usual variables are looked for. */
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly clock?: Clock
  /** The bench composes a billing that only counts; everyone else gets what the settings say. */
  readonly billing?: BooksOptions['billing']
  /** Rejects where this must not serve anybody; asked before it does. */
  readonly provenSafe?: Promise<void>
  /** Called when the process must not go on; by default it ends. */
  readonly fatal?: BooksOptions['fatal']
}

export type Gateway = {
  readonly url: string
  /** Where operators are served. */
  readonly adminUrl: string
  /** The tool server. */
  readonly mcpUrl: string
  readonly mode: Mode
  readonly sandboxUrl: string | undefined
  readonly firstStart: FirstStart
  readonly modelCount: number
  /** A chat model to try the gateway with, if it serves any. */
  readonly exampleModel: string | undefined
  readonly store: Store
  readonly artifacts: Artifacts
  readonly tasks: Tasks
  readonly openHolds: () => number
  /** Brings the database up to date with everything that has been charged, and gives back what nobody is using. */
  settleBooks(): Promise<void>
  /** Takes a new file into use; throws, and changes nothing, where it is not valid. */
  reload(file: ConfigFile): void
  /** Stops gently: no new requests, those in flight to their end or to the deadline, then every hold ended. */
  close(options?: { readonly drainMs?: number }): Promise<void>
}

// A load balancer needs a moment to read the 503 of /readyz before the port stops answering.
const noticeMs = 2_000
const lastSettlementsMs = 5_000

/** The composition root: configuration in, a running gateway out. The only place that builds things. */
export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const { environment, file, log, clock = systemClock } = options
  const { settings } = file
  const secret = installationSecret(environment.secret, environment.dataFolder)
  const secretKeys = makeSecretKeys(secret)
  const ports = await openPorts(environment)
  const { listener } = ports.public
  const orStop = async (thrown: unknown): Promise<never> => {
    await ports.stop()
    throw thrown
  }
  const opening = await openBooks({ ...options, settings, clock, fatal: options.fatal ?? exit(log) }).catch(orStop)
  const { store, node } = opening
  const market = makeMarket({ ...options, clock, hasRealAccount: await anyAccount(store.db, 'real') })
  const { mode } = market
  const books = await opening.opened.catch(orStop)
  await options.provenSafe?.catch(orStop)
  const webhooks = openWebhooks({ store, mode, node, secret, settings: settings.webhooks, clock, log })

  const { authFailuresPerMinute, attemptsMax } = settings.limits
  const keyRing = new KeyRing({ store, secretKeys, mode, clock, log, authFailuresPerMinute })
  const timeouts = callTimeouts(settings.timeouts)
  const channels = () => market.current.channels
  const models = () => market.current.models
  const idempotency = makeIdempotency({ store, secret, node })
  const calling = {
    transport: makeTransport(clock),
    channels,
    timeouts,
    tenantLabel: labelBy(macFor(secret, 'tenant-label')),
  }
  const fetchLink = makeFetchLink(makeGuardedFetch())
  const line: Parts = {
    authenticate: makeAuthenticate(keyRing),
    limit: makeLimit(makeLimiter()),
    once: makeOnce({ idempotency, log }),
    admit: makeAdmit({ models, billing: books.billing, totalMs: timeouts.whole.totalMs }),
    route: makeRoute({ channels, clock, attemptsMax }),
    call: makeCall({ ...calling, fetchLink, log }),
    meter: makeMeter({ log, drains: new Drains(), deadlines: new Deadlines(clock) }),
    release: makeRelease(log),
  }

  const artifacts = openArtifacts({
    settings: settings.artifacts,
    dataFolder: environment.dataFolder,
    publicUrl: settings.publicUrl ?? listener.url,
    mac: macFor(secret, 'artifact-link'),
    clock,
    timers: systemTimers,
    log,
  })

  const mp3 = makeMp3Encoders()
  const publicUrl = settings.publicUrl ?? (mode === 'sandbox' ? listener.url : undefined)
  const tasks = openTasks({
    ...calling,
    store,
    node,
    mode,
    clock,
    timers: systemTimers,
    random: Math.random,
    log,
    fetchLink,
    timeouts: taskTimeouts(timeouts.whole),
    pace: { pollMs: settings.tasks.pollSeconds * 1000, doubtMs: settings.tasks.doubtSeconds * 1000 },
    keepMs: settings.tasks.keepDays * 24 * 60 * 60_000,
    attemptsMax,
    // Vendors cannot reach an address of this machine; simulators can.
    callbacks: publicUrl === undefined ? undefined : makeCallbacks(macFor(secret, 'video-callback'), publicUrl),
    keepResult: (result, about) => artifacts.keep(result, about),
    keepsAll: artifacts.keepsAll,
    reserve: books.reserve,
    giveBackLeases: books.recall,
    told: () => webhooks.wake(),
  })
  const webhookRules = webhookPolicy(mode, settings.webhooks)

  let draining = false
  const json = { depthMax: settings.limits.bodyDepthMax, keysMax: settings.limits.bodyKeysMax }
  const routes = makeRoutes({
    line,
    store,
    artifacts,
    settle: books.settle,
    models,
    clock,
    json,
    chatBodyBytesMax: settings.limits.chatBodyBytesMax,
    imagesBodyBytesMax: settings.limits.imagesBodyBytesMax,
    editsBodyBytesMax: settings.limits.editsBodyBytesMax,
    embeddingsBodyBytesMax: settings.limits.embeddingsBodyBytesMax,
    bodyBytesMax: settings.limits.bodyBytesMax,
    videosBodyBytesMax: settings.limits.videosBodyBytesMax,
    mp3,
    tasks,
    readAsk: (asked, lookUp) => videoCodec.readAsk(asked, lookUp, webhookRules),
    checkWebhook: (url, signal) => webhooks.checkUrl(url, 'webhook_url', signal),
    count: makeCount({
      ...calling,
      log,
      authenticate: (received) => line.authenticate(received),
      limiter: makeLimiter(),
      models,
    }),
    readiness: () => notReady(books, market, draining),
  })
  const edge = { writeError, trustedProxies: new Set(settings.trustedProxies), log }
  const cors = makeCors(settings.cors.origins)
  const mcp = openMcp({
    routes,
    line,
    models,
    artifacts,
    store,
    clock,
    log,
    json,
    edge,
    cors,
    timers: systemTimers,
    version: packageJson.version,
    port: settings.mcp.port,
    at: { hostname: environment.host, port: listener.port, url: listener.url },
    allowed: { publicUrl: settings.publicUrl, hosts: settings.mcp.hosts, origins: settings.cors.origins },
    publicUrl: settings.publicUrl ?? listener.url,
    guardedFetch: makeGuardedFetch(),
    limiter: makeLimiter(),
    sessionMac: macFor(secret, 'tool-session'),
    showPrices: (model) => showModel(model).prices,
    bodyBytesMax: settings.limits.mcpBodyBytesMax,
  })
  // Last of what may fail: a first key is shown once.
  const { bootstrapKey, adminKey } = environment
  const firstStart = await ensureFirstAccount({ store, secretKeys, mode, bootstrapKey, adminKey })
  ports.public.serve(makeEdge({ ...edge, routes: [...routes, ...mcp.publicRoutes], cors }))
  const operators = makeOperators({ store, secretKeys, clock, authFailuresPerMinute })
  const admin = {
    store,
    mode,
    clock,
    operators,
    secretKeys,
    idempotency,
    settle: books.settle,
    models,
    unsold: () => market.current.unsold(),
    channels,
    webhooks,
    tasks,
  }
  ports.admin.serve(makeEdge({ ...edge, routes: makeAdminRoutes(admin), cors: undefined }))
  market.warmUp()
  // Nobody waits for them: what is found is served from then on.
  if (mode === 'real') void offerLocalModels(listener.port, market, log)

  return {
    url: listener.url,
    adminUrl: ports.admin.listener.url,
    mcpUrl: mcp.url,
    mode,
    sandboxUrl: market.sandboxUrl,
    firstStart,
    modelCount: market.current.models.size,
    exampleModel: exampleOf(market.current.models),
    store,
    artifacts,
    tasks,
    openHolds: () => books.billing.open,
    settleBooks: () => books.post(),
    reload: (changed) => market.reload(changed),
    async close({ drainMs = 0 } = {}) {
      draining = true
      tasks.hurry()
      if (drainMs > 0) await sleep(Math.min(noticeMs, drainMs))
      mcp.drain()
      await stopListening(listener, books.billing, drainMs)
      await mcp.close()
      await ports.stop()
      await tasks.close()
      await webhooks.close({ withinMs: drainMs })
      await artifacts.close()
      mp3.stop()
      keyRing.close()
      await books.close()
      await market.close()
    },
  }
}

type Port = { readonly listener: Listener; serve(serve: Serve): void }

/** Both ports, open from the first moment, so that whoever watches can tell a slow start from a dead process. */
async function openPorts(environment: Environment): Promise<{ public: Port; admin: Port; stop(): Promise<void> }> {
  const { host, port, adminHost, adminPort } = environment
  const forCustomers = openPort(host, port)
  try {
    const forOperators = openPort(adminHost, adminPort)
    const stop = async () => {
      await Promise.all([forCustomers.listener.stop(true), forOperators.listener.stop(true)])
    }
    return { public: forCustomers, admin: forOperators, stop }
  } catch (thrown) {
    await forCustomers.listener.stop(true)
    const where = `${adminHost}:${adminPort}`
    throw new Error(`the operator's port ${where} cannot be opened: give another as ADMIN_PORT, or 0 for a free one`, {
      cause: thrown,
    })
  }
}

const whileStarting: Serve = (request) => Promise.resolve(serveWhileStarting(request, writeError))

function openPort(hostname: string, port: number): Port {
  let current = whileStarting
  const listener = listen({
    hostname,
    port,
    // Bodies are bounded route by route, in the shape of the route's errors; the listener's own bound has neither.
    bodyBytesMax: Number.MAX_SAFE_INTEGER,
    fetch: (request, connection) => current(request, connection),
  })
  return {
    listener,
    serve(serve) {
      current = serve
    },
  }
}

function callTimeouts(written: ConfigFile['settings']['timeouts']) {
  const shared = {
    connectMs: written.connectSeconds * 1000,
    idleMs: written.idleSeconds * 1000,
    totalMs: written.totalSeconds * 1000,
  }
  const wholeMs = written.wholeAnswerSeconds * 1000
  return {
    stream: { ...shared, firstByteMs: written.firstByteSeconds * 1000 },
    whole: { ...shared, firstByteMs: wholeMs },
  }
}

// A creation is answered within seconds, and a poll at once; a film is large.
const createMs = 60_000
const askMs = 15_000
const fetchMs = 10 * 60_000

function taskTimeouts(whole: Timeouts) {
  const within = (ms: number) => ({
    ...whole,
    firstByteMs: Math.min(whole.firstByteMs, ms),
    totalMs: Math.min(whole.totalMs, ms),
  })
  return { create: within(createMs), ask: within(askMs), fetch: within(fetchMs) }
}

const usualExample = 'gpt-4o-mini'

/** The example of every guide where it is served, else the first model that can chat. */
function exampleOf(models: Market['current']['models']): string | undefined {
  if (models.has(usualExample)) return usualExample
  for (const [id, model] of models) if (model.capabilities.includes('chat')) return id
  return undefined
}

async function notReady(books: Books, market: Market, draining: boolean): Promise<readonly string[]> {
  if (draining) return ['draining']
  const reasons: string[] = []
  if (market.current.models.size === 0) reasons.push('no vendor is configured, so there is no model to serve')
  await books.store.ping().catch(() => reasons.push('the database does not answer'))
  const trouble = books.trouble()
  if (trouble !== undefined) reasons.push(trouble)
  return reasons
}

/** What a server on this machine says of itself must never keep the gateway from working. */
async function offerLocalModels(ownPort: number, market: Market, log: Log): Promise<void> {
  try {
    market.addLocal(await discoverLocalServers(ownPort))
  } catch (thrown) {
    log.warn({ cause: String(thrown) }, 'the models of local servers cannot be offered')
  }
}

/** What this process knows can no longer be trusted; the next one repairs it from the journal. */
function exit(log: Log) {
  return (why: string, cause: unknown): void => {
    log.error({ why, cause: String(cause) }, 'stopping at once')
    process.exit(1)
  }
}

/** Waits for what is in flight, then cuts what is left: a cut stream settles what it delivered. */
async function stopListening(listener: Listener, billing: TrackedBilling, drainMs: number): Promise<void> {
  const stopped = listener.stop(false)
  await Promise.race([Promise.all([stopped, billing.idle()]), sleep(drainMs)])
  await listener.stop(true)
  await Promise.race([billing.idle(), sleep(lastSettlementsMs)])
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
