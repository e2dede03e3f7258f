import { makeOperators } from './admin/operators.ts'
import { makeAdminRoutes } from './admin/routes.ts'
import { showPrices } from './admin/show-model.ts'
import { makeRanges } from './base/address-ranges.ts'
import { makeGuardedFetch } from './base/guarded-fetch.ts'
import { openArtifacts, type Artifacts } from './artifacts/artifacts.ts'
import { systemClock, systemTimers, type Clock } from './base/clock.ts'
import { Closing } from './base/closing.ts'
import { Deadlines } from './base/deadlines.ts'
import type { GatewayError } from './base/errors.ts'
import type { Log } from './base/log.ts'
import { labelBy, macFor } from './base/secret.ts'
import { openBooks, type Books, type BooksOptions } from './books.ts'
import { exampleOf } from './catalogue/model.ts'
import type { Environment } from './config/environment.ts'
import type { ConfigFile } from './config/file.ts'
import { installationSecret } from './config/installation-secret.ts'
import { callTimeouts, clientTimeouts, taskTimeouts } from './config/timeouts.ts'
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
import { makeEdge } from './edge/edge.ts'
import { Waiting } from './edge/waiting.ts'
import { makeRoutes } from './http/routes.ts'
import { makeIdempotency } from './idempotency/idempotency.ts'
import { openPort } from './http/starting.ts'
import { beingStopped, closePort, giveNotice, stopListening } from './http/stopping.ts'
import { ensureFirstAccount, type FirstStart } from './keys/first-start.ts'
import { KeyRing } from './keys/key-ring.ts'
import { makeSecretKeys } from './keys/secret-keys.ts'
import { makeLimiter } from './limits/limiter.ts'
import { makeMarket, offerLocalModels, type Market } from './market.ts'
import { openMcp } from './mcp/open.ts'
import { makeMp3Encoders } from './media/mp3.ts'
import packageJson from '../package.json'
import { anyAccount } from './store/accounts.ts'
import type { Store } from './store/open.ts'
import type { Mode } from './store/schema.ts'
import { makeCallbacks } from './tasks/callbacks.ts'
import { openTasks, type Tasks } from './tasks/tasks.ts'
import { openWebhooks, webhookPolicy } from './tasks/webhooks/webhooks.ts'
import { openTelemetry } from './telemetry/telemetry.ts'
import { makeFetchLink } from './upstream/links.ts'
import { makeOwnLinks } from './upstream/own-links.ts'
import { makeTransport } from './upstream/transport.ts'
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
  /** Tests wait for a busy database; everyone else is refused as soon as a customer has to be. */
  readonly waitMs?: number
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
  /** What it serves from the start. */
  readonly models: Market['current']['models']
  /** A chat model to try the gateway with, if it serves any. */
  readonly exampleModel: string | undefined
  /** Where there is no model at all. */
  readonly whyEmpty: string | undefined
  readonly store: Store
  readonly artifacts: Artifacts
  readonly tasks: Tasks
  readonly openHolds: () => number
  /** Brings the database up to date with everything that has been charged, and gives back what nobody is using. */
  settleBooks(): Promise<void>
  /** Takes a new file into use; throws, and changes nothing, where it cannot be read or is not valid. */
  reload(read: () => ConfigFile): void
  /** Stops gently: no new requests, those in flight to their end or to the deadline, then every hold ended. */
  close(options?: { readonly drainMs?: number }): Promise<void>
}

/** How all that is open closes, from the first to the last: behind the requests of a stop, and where a start fails. */
const closingOrder = [
  // Nobody comes in any more,
  'tool port',
  'tools',
  'public port',
  'admin port',
  // nothing goes on by itself,
  'tasks',
  'webhooks',
  'answers',
  'artifacts',
  'mp3',
  'keys',
  'telemetry',
  'tidying',
  // what was charged is posted, and only when nothing here writes any more is the folder another's.
  'billing',
  'store',
  'simulators',
  'lock',
] as const

/** The composition root: configuration in, a running gateway out, or what it failed for and nothing left behind. */
export async function openGateway(options: GatewayOptions): Promise<Gateway> {
  const closing = new Closing(closingOrder)
  try {
    return await build(options, closing)
  } catch (thrown) {
    await closing.close().catch((cause: unknown) => {
      options.log.error({ cause: String(cause) }, 'what the start had opened could not be closed')
    })
    throw thrown
  }
}

/** The only place that builds things. */
async function build(options: GatewayOptions, closing: Closing<(typeof closingOrder)[number]>): Promise<Gateway> {
  const { environment, file, log, clock = systemClock } = options
  const { settings } = file
  const secret = installationSecret(environment.secret, environment.dataFolder)
  const secretKeys = makeSecretKeys(secret)
  const { host, port, adminHost, adminPort } = environment
  const publicPort = openPort({ hostname: host, port, setting: 'PORT' }, writeError)
  const { listener } = publicPort
  closing.opened('public port', () => listener.stop(true))
  const operatorsPort = openPort({ hostname: adminHost, port: adminPort, setting: 'ADMIN_PORT' }, writeError)
  closing.opened('admin port', () => closePort(operatorsPort.listener))
  const fatal = options.fatal ?? exit(log)
  const telemetry = openTelemetry({ version: packageJson.version, timers: systemTimers, closing })
  const { tally } = telemetry
  const opening = await openBooks({ ...options, settings, clock, fatal, closing, tally })
  const { store, node } = opening
  const market = makeMarket({ ...options, clock, hasRealAccount: await anyAccount(store.db, 'real'), closing })
  const { mode } = market
  const books = await opening.finish()
  await options.provenSafe
  const webhooks = openWebhooks({ store, mode, node, secret, settings: settings.webhooks, clock, log, tally })
  let deliverMs: number | undefined
  closing.opened('webhooks', () => webhooks.close({ withinMs: deliverMs ?? 0 }))

  const { authFailuresPerMinute, attemptsMax } = settings.limits
  const keyRing = new KeyRing({ store, secretKeys, mode, clock, log, authFailuresPerMinute })
  closing.opened('keys', () => keyRing.close())
  const timeouts = callTimeouts(settings.timeouts)
  const channels = () => market.current.channels
  const models = () => market.current.models
  const publicUrl = settings.publicUrl ?? listener.url
  const artifacts = openArtifacts({
    settings: settings.artifacts,
    dataFolder: environment.dataFolder,
    publicUrl,
    mac: macFor(secret, 'artifact-link'),
    clock,
    timers: systemTimers,
    log,
  })
  closing.opened('artifacts', () => artifacts.close())
  const idempotency = makeIdempotency({ store, secret, node, longAnswers: artifacts, log })
  closing.opened('answers', () => idempotency.close())
  const calling = {
    transport: makeTransport(clock),
    channels,
    timeouts,
    tenantLabel: labelBy(macFor(secret, 'tenant-label')),
  }
  const isOwnLink = makeOwnLinks({ simulators: market.sandboxUrl, publicUrl })
  const strangers = makeGuardedFetch({ isOwn: isOwnLink })
  const stop = new AbortController()
  const stopping = stop.signal
  const line: Parts = {
    authenticate: makeAuthenticate(keyRing),
    limit: makeLimit(makeLimiter()),
    once: makeOnce({ idempotency, log }),
    admit: makeAdmit({ models, billing: books.billing, totalMs: timeouts.whole.totalMs }),
    route: makeRoute({ channels, clock, attemptsMax }),
    call: makeCall({ ...calling, fetchLink: makeFetchLink(strangers, stopping), stopping, log }),
    meter: makeMeter({
      log,
      drains: new Drains(),
      deadlines: new Deadlines(clock),
      timeouts: clientTimeouts(settings.timeouts),
    }),
    release: makeRelease(log, tally),
  }

  const mp3 = makeMp3Encoders()
  closing.opened('mp3', () => mp3.stop())
  // Vendors cannot reach an address of this machine; simulators can.
  const callbackUrl = settings.publicUrl ?? (mode === 'sandbox' ? listener.url : undefined)
  // A stop ends calls whose clients it answers. What a vendor has begun to make is carried through, or nobody knew its id.
  const making = makeTransport(clock)
  const tasks = openTasks({
    ...calling,
    transport: making,
    store,
    node,
    mode,
    clock,
    timers: systemTimers,
    random: Math.random,
    log,
    fetchLink: makeFetchLink(strangers),
    timeouts: taskTimeouts(timeouts.whole),
    pace: { pollMs: settings.tasks.pollSeconds * 1000, doubtMs: settings.tasks.doubtSeconds * 1000 },
    keepMs: settings.tasks.keepDays * 24 * 60 * 60_000,
    attemptsMax,
    callbacks: callbackUrl === undefined ? undefined : makeCallbacks(macFor(secret, 'video-callback'), callbackUrl),
    keepResult: (result, about) => artifacts.keep(result, about),
    keepsAll: artifacts.keepsAll,
    reserve: books.reserve,
    giveBackLeases: books.recall,
    told: () => webhooks.wake(),
    tally,
  })
  closing.opened('tasks', () => tasks.close())
  const webhookRules = webhookPolicy(mode, settings.webhooks)

  let draining = false
  const json = { depthMax: settings.limits.bodyDepthMax, keysMax: settings.limits.bodyKeysMax }
  const routes = makeRoutes({
    line,
    store,
    artifacts,
    isOwnLink,
    bringUpToDate: books.bringUpToDate,
    models,
    showPrices,
    clock,
    json,
    ...settings.limits,
    mp3,
    tasks,
    readAsk: (asked, lookUp) => videoCodec.readAsk(asked, lookUp, webhookRules, isOwnLink),
    checkWebhook: (url, signal) => webhooks.checkUrl(url, 'webhook_url', signal),
    count: makeCount({
      ...calling,
      log,
      authenticate: (received) => line.authenticate(received),
      once: (limited, walk) => line.once(limited, walk),
      limiter: makeLimiter(),
      models,
    }),
    readiness: () => notReady(books, market, draining),
  })
  const operatorsEdge = { writeError, isProxy: makeRanges(settings.trustedProxies), log, tally }
  const waiting = new Waiting()
  const edge = { ...operatorsEdge, waiting }
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
    publicUrl,
    guardedFetch: strangers,
    stopping,
    waiting,
    limiter: makeLimiter(),
    sessionMac: macFor(secret, 'tool-session'),
    showPrices,
    bodyBytesMax: settings.limits.mcpBodyBytesMax,
    closing,
  })
  // Last of what may fail: a first key is shown once.
  const { bootstrapKey, adminKey } = environment
  const firstStart = await ensureFirstAccount({ store, secretKeys, mode, bootstrapKey, adminKey })
  publicPort.serve(makeEdge({ ...edge, routes: [...routes, ...mcp.publicRoutes], cors }))
  const { metricsKey } = environment
  const operators = makeOperators({ store, secretKeys, clock, authFailuresPerMinute, metricsKey })
  const admin = {
    store,
    mode,
    clock,
    operators,
    secretKeys,
    idempotency,
    bringUpToDate: books.bringUpToDate,
    models,
    unsold: () => market.current.unsold(),
    channels,
    webhooks,
    tasks,
    telemetry,
    books,
    isDraining: () => draining,
  }
  operatorsPort.serve(makeEdge({ ...operatorsEdge, routes: makeAdminRoutes(admin), cors: undefined }))
  market.warmUp()
  // Nobody waits for them: what is found is served from then on.
  if (mode === 'real') void offerLocalModels(listener.port, calling.transport, market, log)

  return {
    url: listener.url,
    adminUrl: operatorsPort.listener.url,
    mcpUrl: mcp.url,
    mode,
    sandboxUrl: market.sandboxUrl,
    firstStart,
    models: market.current.models,
    exampleModel: exampleOf(market.current.models),
    whyEmpty: market.current.whyEmpty,
    store,
    artifacts,
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
      const isSecond = draining
      draining = true
      // Of two stops, the one in more of a hurry, whichever gets as far as that first.
      deliverMs = Math.min(deliverMs ?? drainMs, drainMs)
      tasks.hurry()
      await giveNotice(drainMs)
      const links = { stop: (reason: GatewayError) => stop.abort(reason) }
      const ports = mcp.listener === undefined ? [listener] : [listener, mcp.listener]
      await stopListening(ports, books.billing, [calling.transport, links, tasks], waiting, drainMs)
      // Whoever asks again is in a hurry, and does not wait for what the first lets arrive. Films that nobody knows the id
      // of are looked for by the next process.
      if (isSecond) {
        making.stop(beingStopped())
        await webhooks.close({ withinMs: drainMs })
      }
      await closing.close()
    },
  }
}

async function notReady(books: Books, market: Market, draining: boolean): Promise<readonly string[]> {
  if (draining) return ['draining']
  const reasons: string[] = []
  const { whyEmpty } = market.current
  if (whyEmpty !== undefined) reasons.push(`there is no model to serve: ${whyEmpty}`)
  await books.store.ping().catch(() => reasons.push('the database does not answer'))
  const trouble = books.trouble()
  if (trouble !== undefined) reasons.push(trouble)
  return reasons
}

/** What this process knows can no longer be trusted; the next one repairs it from the journal. */
function exit(log: Log) {
  return (why: string, cause: unknown): void => {
    log.error({ why, cause: String(cause) }, 'stopping at once')
    process.exit(1)
  }
}
