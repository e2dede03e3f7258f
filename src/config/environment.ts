import { join } from 'node:path'
import { z } from 'zod'

const port = z
  .string()
  .refine(
    (text) => /^\d{1,5}$/.test(text) && Number(text) <= 65_535,
    'must be a port from 0 to 65535; 0 takes a free one',
  )
  .transform(Number)

/** An IPv6 address may be given with the brackets that it has in a URL. */
const host = z
  .string()
  .min(1)
  .default('127.0.0.1')
  .transform((text) => text.replace(/^\[(.+)\]$/, '$1'))

/** The environment variables. Secrets among them are read only here and are passed on as values. */
const schema = z.object({
  PORT: port.default(8080),
  HOST: host,
  ADMIN_PORT: port.default(8081),
  ADMIN_HOST: host,
  SANDBOX_PORT: port.default(0),
  SANDBOX_URL: z
    .string()
    .refine(isOrigin, 'must be the address of npx turnpike sandbox, such as http://127.0.0.1:9090, without a path')
    .optional(),
  TURNPIKE_DATA: z.string().min(1).default('data'),
  DATABASE_URL: z
    .string()
    .regex(/^postgres(?:ql)?:\/\//, 'must start with postgres://; leave it out for the embedded SQLite database')
    .refine(
      isDatabaseUrl,
      'must be the address of one host; in a password write / as %2F, ? as %3F, # as %23, @ as %40 and % as %25',
    )
    .transform(withCertificateChecked)
    .optional(),
  TURNPIKE_SECRET: z.string().min(32, 'must be at least 32 bytes; try: openssl rand -hex 32').optional(),
  TURNPIKE_BOOTSTRAP_KEY: z
    .string()
    .regex(/^sk-[A-Za-z0-9_-]{32,}$/, 'must be sk- and at least 32 letters, digits, - or _')
    .optional(),
  TURNPIKE_ADMIN_KEY: z
    .string()
    .regex(/^adm-[A-Za-z0-9_-]{32,}$/, 'must be adm- and at least 32 letters, digits, - or _')
    .optional(),
  TURNPIKE_METRICS_KEY: z
    .string()
    .regex(/^mtr-[A-Za-z0-9_-]{32,}$/, 'must be mtr- and at least 32 letters, digits, - or _')
    .optional(),
})

/** Their names, for a process that must not inherit any of them. */
export const environmentVariables: readonly string[] = Object.keys(schema.shape)

export type Environment = {
  readonly host: string
  readonly port: number
  readonly adminHost: string
  readonly adminPort: number
  /** The port of this node's own simulators. */
  readonly sandboxPort: number
  /** The address of simulators that several nodes share; this node then runs none of its own. */
  readonly sandboxUrl: string | undefined
  readonly dataFolder: string
  readonly databaseUrl: string | undefined
  readonly secret: string | undefined
  readonly bootstrapKey: string | undefined
  readonly adminKey: string | undefined
  /** Gives access to the metrics and to nothing else. */
  readonly metricsKey: string | undefined
}

export class EnvironmentError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'EnvironmentError'
  }
}

export function readEnvironment(variables: Record<string, string | undefined>): Environment {
  // An empty variable is how shells and compose files spell an absent one.
  const given = Object.fromEntries(Object.entries(variables).filter(([, value]) => value !== ''))
  const parsed = schema.safeParse(given)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new EnvironmentError(`${String(issue?.path[0])} ${issue?.message}`)
  }
  const found = parsed.data
  if (found.DATABASE_URL !== undefined && found.TURNPIKE_SECRET === undefined) {
    throw new EnvironmentError('TURNPIKE_SECRET is required with PostgreSQL: every node must hash keys alike')
  }
  if (found.PORT !== 0 && found.PORT === found.ADMIN_PORT && shareAddresses(found.HOST, found.ADMIN_HOST)) {
    throw new EnvironmentError('ADMIN_PORT must differ from PORT: operators have a port of their own')
  }
  return {
    host: found.HOST,
    port: found.PORT,
    adminHost: found.ADMIN_HOST,
    adminPort: found.ADMIN_PORT,
    sandboxPort: found.SANDBOX_PORT,
    sandboxUrl: found.SANDBOX_URL,
    dataFolder: found.TURNPIKE_DATA,
    databaseUrl: found.DATABASE_URL,
    secret: found.TURNPIKE_SECRET,
    bootstrapKey: found.TURNPIKE_BOOTSTRAP_KEY,
    adminKey: found.TURNPIKE_ADMIN_KEY,
    metricsKey: found.TURNPIKE_METRICS_KEY,
  }
}

/** Whether a port taken on one host is taken on the other, too: a listener on all addresses takes it on each. */
export function shareAddresses(host: string, other: string): boolean {
  const hosts = [host, other]
  if (host === other || hosts.includes('::') || hosts.includes('*')) return true
  // Whether localhost is 127.0.0.1 or ::1 depends on the machine, and a caller that uses the name may mean either.
  if (hosts.includes('localhost') && hosts.some((address) => address === '127.0.0.1' || address === '::1')) return true
  return hosts.includes('0.0.0.0') && !hosts.some((address) => address.includes(':'))
}

/**
 * The address of a Unix socket has a user but no host, which the URL parser refuses, so the check fills in a host. The
 * driver would take several hosts for one with commas in its name, and look for that.
 */
function isDatabaseUrl(text: string): boolean {
  const url = URL.parse(text.replace('@/', '@socket/'))
  if (url === null) return false
  const { hostname, searchParams } = url
  const given = searchParams.get('host') ?? ''
  return !hostname.includes(',') && (given.startsWith('/') || !given.includes(','))
}

/**
 * The driver checks the server's certificate in each of these modes, and warns in many lines that a later version of it
 * will not. The mode that says so stays as strict and needs no warning.
 */
function withCertificateChecked(url: string): string {
  if (url.includes('uselibpqcompat=true')) return url
  return url.replace(/([?&]sslmode=)(?:prefer|require|verify-ca)(?=&|$)/, '$1verify-full')
}

function isOrigin(text: string): boolean {
  if (!/^https?:\/\/[^/?#@]+$/.test(text)) return false
  return URL.canParse(text)
}

export function databaseFile(environment: Pick<Environment, 'dataFolder'>): string {
  return join(environment.dataFolder, 'turnpike.sqlite')
}
