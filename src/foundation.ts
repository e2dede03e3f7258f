import { systemClock, systemTimers, type Clock } from './base/clock.ts'
import type { Opening } from './base/closing.ts'
import type { Log } from './base/log.ts'
import { openBooks, type BooksOptions } from './books.ts'
import type { Environment } from './config/environment.ts'
import type { ConfigFile } from './config/file.ts'
import { installationSecret } from './config/installation-secret.ts'
import { checkFolder } from './config/kept-once.ts'
import { openPort } from './http/starting.ts'
import { closePort } from './http/stopping.ts'
import { makeSecretKeys } from './keys/secret-keys.ts'
import { makeMarket } from './market.ts'
import packageJson from '../package.json'
import { anyAccount } from './store/accounts.ts'
import { openTelemetry } from './telemetry/telemetry.ts'
import type { Vendor } from './vendors/vendor.ts'

export type GatewayOptions = {
  readonly environment: Environment
  readonly file: ConfigFile
  /** Where vendors' usual variables are looked for. */
  readonly variables: Readonly<Record<string, string | undefined>>
  readonly log: Log
  readonly clock?: Clock
  /** The bench passes a billing that only counts; when absent, the settings decide. */
  readonly billing?: BooksOptions['billing']
  /** Tests wait longer for a busy database; when absent, a customer's request is refused after the usual time. */
  readonly waitMs?: number
  /** The vendors whose servers are looked for on this machine. Tests pass none, since the machine may have one. */
  readonly localVendors?: Iterable<Vendor>
  /** Awaited before anything is served; rejects where this process must not serve. */
  readonly provenSafe?: Promise<void>
  /** Called when the process must not go on; by default it ends. */
  readonly fatal?: BooksOptions['fatal']
}

type FoundationStep =
  | 'public port'
  | 'admin port'
  | 'prices'
  | 'telemetry'
  | 'tidying'
  | 'billing'
  | 'store'
  | 'simulators'
  | 'lock'

/** What everything else stands on: the ports, the database and its books, and what is on offer. */
export async function openFoundation(options: GatewayOptions, closing: Opening<FoundationStep>) {
  const { environment, file, log, clock = systemClock } = options
  const { settings } = file
  checkFolder(environment.dataFolder)
  const secret = installationSecret(environment.secret, environment.dataFolder)
  const secretKeys = makeSecretKeys(secret)
  const { host, port, adminHost, adminPort } = environment
  const publicPort = openPort({ hostname: host, port, setting: 'PORT' }, log)
  closing.opened('public port', () => publicPort.listener.stop('at-once'))
  const operatorsPort = openPort({ hostname: adminHost, port: adminPort, setting: 'ADMIN_PORT' }, log)
  closing.opened('admin port', () => closePort(operatorsPort.listener))
  const fatal = options.fatal ?? exit(log)
  const telemetry = openTelemetry({ version: packageJson.version, timers: systemTimers, closing })
  const { tally } = telemetry
  const opening = await openBooks({ ...options, settings, clock, fatal, closing, tally })
  const { store, node } = opening
  const market = makeMarket({
    ...options,
    clock,
    timers: systemTimers,
    hasRealAccount: await anyAccount(store.db, 'real'),
    closing,
  })
  const books = await opening.finish()
  await options.provenSafe
  return {
    environment,
    settings,
    log,
    clock,
    timers: systemTimers,
    secret,
    secretKeys,
    publicPort,
    /** Where clients find us. */
    publicUrl: settings.publicUrl ?? publicPort.listener.url,
    operatorsPort,
    telemetry,
    tally,
    store,
    node,
    books,
    market,
    mode: market.mode,
    channels: () => market.current.channels,
    models: () => market.current.models,
    json: {
      depthMax: settings.limits.bodyDepthMax,
      keysMax: settings.limits.bodyKeysMax,
      replacesHalves: true,
    },
  }
}

export type OpenedFoundation = Awaited<ReturnType<typeof openFoundation>>

/** The state of this process can no longer be trusted; the next one repairs it from the journal. */
function exit(log: Log) {
  return (why: string, cause: unknown): void => {
    log.error({ why, cause: String(cause) }, 'stopping at once')
    process.exit(1)
  }
}
