import { systemClock } from '../base/clock.ts'
import { messageOf } from '../base/errors.ts'
import { isObject } from '../base/json.ts'
import { checkHost } from '../base/listen.ts'
import {
  databaseFile,
  EnvironmentError,
  readEnvironment,
  shareAddresses,
  type Environment,
} from '../config/environment.ts'
import { ConfigError, type ConfigFile } from '../config/file.ts'
import { checkSecret } from '../config/installation-secret.ts'
import { planMarket, type Plan } from '../plan.ts'
import { assertSandboxAnswers, noSandboxMessage } from '../sandbox/remote-sandbox.ts'
import { localCredential, type Channel } from '../upstream/channels.ts'
import { complaintsAbout } from './complaints.ts'
import { hasRealAccount, isInstalled } from './installation.ts'
import { offerOf, unsoldColumns } from './models.ts'
import { say, sayJson, sheet, table, withoutSecretsOf, type Column } from './output.ts'
import { remarksOn } from './remarks.ts'
import { checkRuntime } from './runtime.ts'
import { loadUnfilled } from './settings.ts'

type Complaint = { file?: string; line?: number; column?: number; path?: string; message: string }

// What channels and models say is only known of a file whose settings all have their form.
const unread = 'Once the settings file is mended, its channels and models are checked, too.'

type Findings = { readonly texts: string[]; readonly complaints: Complaint[] }

/** `turnpike check`: prints all that a start would refuse or, if nothing, what it would serve. Changes nothing. */
export async function check(options: { config?: string; json?: boolean }): Promise<void> {
  const findings: Findings = { texts: [], complaints: [] }
  const environment = await attempt(findings, async () => {
    await checkRuntime()
    return readEnvironment(process.env)
  })
  const loaded = await attempt(findings, () => loadUnfilled(options.config))
  if (environment !== undefined) {
    const { host, port, adminHost, adminPort } = environment
    await attempt(findings, () => checkSecret(environment.secret, environment.dataFolder))
    await attempt(findings, () => checkHost({ hostname: host, port, setting: 'PORT' }))
    await attempt(findings, () => checkHost({ hostname: adminHost, port: adminPort, setting: 'ADMIN_PORT' }))
  }
  // A real account in the database keeps a gateway without vendors out of sandbox mode.
  const isUsed = environment && (await attempt(findings, () => hasRealAccount(environment)))
  if (environment !== undefined && loaded !== undefined) checkToolPort(findings, environment, loaded.file)
  if (loaded !== undefined) {
    const isSandbox = loaded.file.settings.sandbox ?? false
    for (const error of complaintsAbout(loaded, process.env, isSandbox)) note(findings, error)
  }
  const hasFaults = findings.complaints.some(({ file }) => file !== undefined)
  if (loaded === undefined && hasFaults) findings.texts.push(unread)
  if (findings.texts.length > 0 || environment === undefined || loaded === undefined) {
    report(findings, options.json)
    return
  }
  const plan = planMarket({
    file: loaded.file,
    variables: process.env,
    hasRealAccount: isUsed ?? false,
    clock: systemClock,
  })
  const seen = await look({ ...loaded, environment, plan })
  if (options.json === true) sayJson(asJson(seen))
  else sayInWords(seen)
}

async function attempt<T>(findings: Findings, read: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await read()
  } catch (thrown) {
    note(findings, thrown)
    return undefined
  }
}

/** The tool server listens on the public host, so its port must differ from every other port there. */
function checkToolPort(findings: Findings, { host, port, adminHost, adminPort }: Environment, file: ConfigFile): void {
  const given = file.settings.mcp.port
  if (given === undefined || given === 0) return
  const complain = (of: string) => note(findings, file.complain(['mcp', 'port'], `must differ from ${of}`))
  if (given === port) complain('PORT')
  else if (given === adminPort && shareAddresses(host, adminHost)) complain('ADMIN_PORT')
}

function clean(text: string): string {
  return withoutSecretsOf(text, process.env)
}

function note({ texts, complaints }: Findings, thrown: unknown): void {
  const message = clean(messageOf(thrown))
  texts.push(thrown instanceof EnvironmentError ? `environment: ${message}` : message)
  if (!(thrown instanceof ConfigError)) {
    complaints.push({ message })
    return
  }
  const { file } = thrown
  for (const complaint of thrown.complaints) {
    complaints.push({ file, ...complaint, path: clean(complaint.path), message: clean(complaint.message) })
  }
}

function report({ texts, complaints }: Findings, json = false): void {
  if (json) sayJson({ valid: false, complaints })
  else for (const text of texts) console.error(text)
  process.exitCode = 1
}

type Checked = {
  readonly file: ConfigFile
  readonly path: string | undefined
  readonly environment: Environment
  readonly plan: Plan
}

/** Finds out what a start would serve. */
async function look({ file, path, environment, plan }: Checked) {
  const { mode, configured } = plan
  const { models, others } = offerOf(plan)
  const own = new Set(file.settings.models.map((model) => (isObject(model) ? model['id'] : undefined)))
  const sandboxUrl = mode === 'sandbox' ? environment.sandboxUrl : undefined
  return {
    mode,
    path,
    configured,
    models,
    idle: others.filter(({ id }) => own.has(id)),
    remarks: remarksOn({ environment, file, variables: process.env, mode, models, clock: systemClock }),
    sandboxUrl,
    isAnswered: sandboxUrl === undefined || (await answers(sandboxUrl)),
    database: await describeDatabase(environment),
  }
}

type Seen = Awaited<ReturnType<typeof look>>

function asJson({ mode, path, configured, models, idle, remarks, sandboxUrl, isAnswered, database }: Seen) {
  return {
    valid: true,
    mode,
    file: path ?? null,
    database,
    ...(sandboxUrl !== undefined && { simulators_answer: isAnswered }),
    channels: configured.map(({ id, vendor, credentials, weight, priority }) => ({
      id,
      vendor: vendor.id,
      keys: keysAmong(credentials),
      weight,
      priority,
    })),
    models: [...models.keys()],
    not_served: idle,
    ignored_variables: remarks.ignored,
    unverified_prices: remarks.unverified,
    remarks: remarks.lines,
  }
}

function sayInWords({ mode, path, configured, models, idle, remarks, sandboxUrl, isAnswered, database }: Seen): void {
  say('The configuration is valid. A start now would serve:')
  say()
  say(
    sheet({
      mode: mode === 'real' ? 'real' : `sandbox: ${isAnswered ? 'simulators answer, ' : ''}nothing costs real money`,
      file: path ?? 'none, every setting has its default',
      database,
      models: `${models.size} (turnpike models lists them)`,
    }),
  )
  if (configured.length > 0) {
    say()
    say(table(columns, configured))
  } else if (mode === 'real')
    say('\nNo vendor is configured: only local model servers, if there are any, would answer.')
  if (!isAnswered) say(`\n${noSandboxMessage(sandboxUrl ?? '')}`)
  if (remarks.lines.length > 0) say(`\n${remarks.lines.join('\n')}`)
  if (idle.length === 0) return
  say('\nThese models in the file would not be served:')
  say(table(unsoldColumns, idle))
}

async function answers(sandboxUrl: string): Promise<boolean> {
  return assertSandboxAnswers(sandboxUrl).then(
    () => true,
    () => false,
  )
}

/** A server that needs no key is sent a stand-in, which the operator did not give. */
function keysAmong(credentials: Channel['credentials']): number {
  return credentials.filter((credential) => credential !== localCredential).length
}

async function describeDatabase(environment: Environment): Promise<string> {
  const place = environment.databaseUrl === undefined ? databaseFile(environment) : 'PostgreSQL'
  return (await isInstalled(environment)) ? place : `${place} (made at the first start)`
}

const columns: readonly Column<Channel>[] = [
  { name: 'CHANNEL', show: ({ id }) => id },
  { name: 'VENDOR', show: ({ vendor }) => vendor.id },
  { name: 'HOST', show: ({ baseUrl }) => new URL(baseUrl).host },
  { name: 'KEYS', align: 'right', show: ({ credentials }) => String(keysAmong(credentials)) },
  { name: 'WEIGHT', align: 'right', show: ({ weight }) => String(weight) },
  { name: 'PRIORITY', align: 'right', show: ({ priority }) => String(priority) },
]
