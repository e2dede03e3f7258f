import { systemClock } from '../base/clock.ts'
import { makeLog, type Log } from '../base/log.ts'
import { showDollars } from '../base/money.ts'
import { probeGuard } from '../base/probe-guard.ts'
import { readEnvironment } from '../config/environment.ts'
import type { FileSettings } from '../config/schema.ts'
import { settingsNeedingRestart } from '../config/settings-needing-restart.ts'
import { openGateway, type Gateway } from '../gateway.ts'
import { accountToPaste, counted, say, withoutSecretsOf } from './output.ts'
import { remarksOn } from './remarks.ts'
import { checkVersion } from './runtime.ts'
import { defaultFile, loadSettings } from './settings.ts'
import { watchFile } from './watch-file.ts'

/** `turnpike serve`: runs until it is told to stop. */
export async function serve(options: { config?: string }): Promise<void> {
  checkVersion()
  outliveLog()
  const provenSafe = probeGuard()
  provenSafe.catch(() => {}) // openGateway awaits it before anything is served
  const environment = readEnvironment(process.env)
  const { file, path } = loadSettings(options.config)
  const log = makeLog({ level: file.settings.log.level })
  const hangup = hearHangup()
  const stop = hearStop(log)
  const gateway = await openGateway({ environment, file, variables: process.env, log, provenSafe })
  // The variable that holds a working key: a bootstrap key that was given is in the operator's own shell.
  const keyVariable = environment.bootstrapKey === undefined ? 'TURNPIKE_KEY' : 'TURNPIKE_BOOTSTRAP_KEY'
  const { mode, models } = gateway
  const remarks = remarksOn({ environment, file, variables: process.env, mode, models, clock: systemClock }).lines
  const simulators = environment.sandboxUrl === undefined ? 'simulators answer' : 'simulators are asked'
  greet(gateway, { keyVariable, isAskedFor: file.settings.sandbox === true, simulators, remarks })
  reloadOnChange(gateway, { path, used: file.settings, log, hangup })
  stop(stopGently(gateway, file.settings.timeouts.drainSeconds * 1000, log))
}

/** Keeps the gateway serving and billing when the log's disk is full or its reader is gone. */
function outliveLog(): void {
  let isTold = false
  process.stdout.on('error', (thrown: Error) => {
    if (!isTold) console.error(`turnpike: the log cannot be written: ${thrown.message}`)
    isTold = true
  })
  process.stderr.on('error', () => {})
}

type Greeting = {
  readonly keyVariable: string
  /** Whether the settings ask for sandbox mode; otherwise it is on because no vendor is configured. */
  readonly isAskedFor: boolean
  /** What is said of the simulators: of those at SANDBOX_URL it is not yet known whether they answer. */
  readonly simulators: string
  readonly remarks: readonly string[]
}

function greet(gateway: Gateway, { keyVariable, isAskedFor, simulators, remarks }: Greeting): void {
  const { mode, firstStart, url } = gateway
  const { account, key, adminKey } = firstStart
  say()
  say(`Turnpike serves ${counted(gateway.models.size, 'model')} at ${url}/v1 (reference: ${url}/docs)`)
  say(`The tool server for agents (MCP) is at ${gateway.mcpUrl} (docs/mcp.md)`)
  say(`The operator's API is at ${gateway.adminUrl}/admin (docs/operators.md)`)
  if (mode === 'sandbox') {
    const why = isAskedFor ? 'as turnpike.yaml says' : 'no vendor is configured'
    say(`Sandbox mode, ${why}: ${simulators} (${gateway.sandboxUrl}). Nothing costs real money.`)
    say(`Account "${account.name}" has ${showDollars(account.posted)} of play money.`)
  }
  for (const remark of remarks) say(remark)
  say()
  if (key !== undefined) {
    say('Your key (shown only now; Turnpike keeps a keyed hash of it):')
    say(`  ${key}`)
    if (account.unlimited)
      say(`Its account "${account.name}" is metered and never refused for lack of funds: keep this key to yourself.`)
  } else {
    say(`Make a new key with: npx turnpike keys create --account ${accountToPaste(account)}`)
  }
  if (adminKey !== undefined) {
    say("The operator's key (shown only now):")
    say(`  ${adminKey}`)
  }
  say()
  const { exampleModel, whyEmpty } = gateway
  if (exampleModel === undefined) return say(`There is no model to try yet: ${whyEmpty ?? 'none of those can chat'}.`)
  const credential = key ?? `$${keyVariable}`
  const isNamed = key === undefined && keyVariable === 'TURNPIKE_KEY'
  say(key === undefined ? `Try it (with your key in ${keyVariable}):` : 'Try it:')
  say(`  curl ${url}/v1/chat/completions \\`)
  say(`    -H "Authorization: Bearer ${credential}" \\`)
  say('    -H "Content-Type: application/json" \\')
  say(`    -d '{"model": "${exampleModel}", "messages": [{"role": "user", "content": "Hello!"}]}'`)
  say('  (add "stream": true to the body to see it stream)')
  say('For the examples in docs/:')
  say(`  export TURNPIKE_URL=${url}${isNamed ? '' : ` TURNPIKE_KEY=${credential}`}`)
  say()
}

/** Sets what SIGHUP does. A signal that came before, perhaps while waiting for the database, is acted on then. */
type Hangup = (reload: () => void) => void

/** Without a listener, SIGHUP would end the process. */
function hearHangup(): Hangup {
  let isHeard = false
  let answer = () => {
    isHeard = true
  }
  process.on('SIGHUP', () => answer())
  return (reload) => {
    answer = reload
    if (isHeard) reload()
  }
}

type Reloading = {
  readonly path: string | undefined
  readonly used: FileSettings
  readonly log: Log
  readonly hangup: Hangup
}

/** Reloads the settings on SIGHUP or a change of the file. Invalid ones are logged, and the old ones stay in use. */
function reloadOnChange(gateway: Gateway, { path, used, log, hangup }: Reloading): void {
  // Without a file at the start, the first one that is found counts from then on: its removal is no change of settings.
  let known = path
  const reload = () => {
    try {
      let waiting: readonly string[] = []
      gateway.reload(() => {
        const { file, path: found } = loadSettings(known, 'reload')
        known = found
        waiting = settingsNeedingRestart(used, file.settings)
        return file
      })
      const rest = waiting.length === 0 ? '' : `, but for settings that need a restart: ${waiting.join(', ')}`
      const { whyEmpty } = gateway
      // Valid, but hardly intended.
      if (whyEmpty === undefined) log.info({}, `the configuration was reloaded${rest}`)
      else log.error({}, `the configuration was reloaded: there is no model to serve: ${whyEmpty}${rest}`)
    } catch (thrown) {
      // The error may quote a value that came from a variable, and that variable may hold a key.
      const cause = withoutSecretsOf(String(thrown), process.env)
      log.error({ cause }, 'the changed configuration is not valid; the old one stays in use')
    }
  }
  hangup(reload)
  watchFile(path ?? defaultFile, {
    changed: reload,
    cannot: (folder, thrown) =>
      log.warn(
        { cause: String(thrown) },
        `changes in ${folder} cannot be watched: send SIGHUP to reload the configuration`,
      ),
  })
}

// npm and a terminal may each pass on the same Ctrl-C.
const sameSignalMs = 1_000

/** Sets what SIGTERM and SIGINT do. Until then they end the process, which has not served anything yet. */
type Stop = (stop: () => void) => void

/** Without a listener, the first process of a container would be deaf to both while it waits for its database. */
function hearStop(log: Log): Stop {
  let answer = (): void => {
    log.info({}, 'stopping before the start is complete')
    process.exit(0)
  }
  process.on('SIGTERM', () => answer())
  process.on('SIGINT', () => answer())
  return (stop) => {
    answer = stop
  }
}

/** The first call drains, a later one cuts short. */
function stopGently(gateway: Gateway, drainMs: number, log: Log): () => void {
  let lastAt: number | undefined
  return () => {
    const now = performance.now()
    if (lastAt !== undefined && now - lastAt < sameSignalMs) return
    const isFirst = lastAt === undefined
    lastAt = now
    log.info(
      { openRequests: gateway.openHolds() },
      isFirst ? 'stopping once requests are done, after a moment in which load balancers see it' : 'stopping now',
    )
    gateway.close({ drainMs: isFirst ? drainMs : 0 }).then(
      () => process.exit(0),
      (thrown: unknown) => {
        log.error({ cause: String(thrown) }, 'stopping failed')
        process.exit(1)
      },
    )
  }
}
