import { cpSync } from 'node:fs'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { join } from 'node:path'
import { systemClock } from '../../src/base/clock.ts'
import { readConfigFile } from '../../src/config/file.ts'
import { readCatalogue, readChannels } from '../../src/plan.ts'
import { simulatedModels } from '../../src/simulated.ts'
import { startSandbox } from '../../src/sandbox/sandbox.ts'
import { openStore, type Engine } from '../../src/store/open.ts'
import { canary, type Canary, type Places } from './canaries.ts'
import { makeCli, type Served } from './cli.ts'
import { freePort } from './free-port.ts'
import { sharedPostgres } from './postgres.ts'
import { startReceiver, type Receiver } from './receiver.ts'
import { startTinyS3, type TinyS3 } from './s3.ts'
import { tapPostgres, type TappedPostgres } from './tapped-postgres.ts'
import { answer, completion, delta, done, event, startVendor, stream, usageEvent, type Reply } from './vendor.ts'
import { temporaryFolder } from './temporary-folder.ts'

const sold = ['openai', 'anthropic', 'google', 'dashscope', 'ark', 'minimax', 'cohere', 'voyage', 'elevenlabs'] as const
type VendorKey = `${(typeof sold)[number]}Key`

/** The secrets that exist from the beginning; those that the gateway makes are added later. */
function plant() {
  return {
    clientKey: canary('sk-'),
    operatorKey: canary('adm-'),
    metricsKey: canary('mtr-'),
    installationSecret: canary(),
    databasePassword: canary(),
    bucketSecret: canary(),
    ...(Object.fromEntries(sold.map((id) => [`${id}Key`, canary()])) as Record<VendorKey, Canary>),
    klingKey: canary(),
    writtenKey: canary(),
    misplacedKey: canary(),
    unknownKey: canary('sk-'),
    foreignKey: canary('AIza'),
    prompt: canary('prompt-'),
    instructions: canary('instructions-'),
    answer: canary('answer_'),
    refusal: canary('refusal_'),
    picture: canary('picture-'),
    edit: canary('edit-'),
    speech: canary('speech-'),
    embedding: canary('vector-'),
    film: canary('film-'),
    doubtfulFilm: canary('doubt-'),
    firstFrame: canary('frame-'),
    tool: canary('tool-'),
    brokenBody: canary('broken_'),
    userLabel: canary('label-'),
    metadata: canary('metadata-'),
    fileName: canary('name-'),
    fileBytes: canary('bytes-'),
    idempotencyKey: canary('once-'),
    header: canary('header-'),
    cookie: canary('cookie-'),
    madeUpId: canary('id-'),
    query: canary('query-'),
    path: canary('path-'),
    unknownModel: canary('model-'),
    receiverToken: canary('token-'),
    receiverWords: canary('words-'),
  }
}

export type Planted = ReturnType<typeof plant>

/** A vendor that answers as the prompt's last `raw:` word says, with text that was not in the prompt. */
function rawVendor(secrets: Planted): Reply {
  const says = secrets.answer
  const no = `${secrets.refusal} of ${secrets.writtenKey}`
  const refusal = JSON.stringify({ error: { message: no, type: 'odd', param: null, code: null } })
  const streamed = (events: string) => stream(delta(says) + events)
  const replies: Readonly<Record<string, string | Uint8Array>> = {
    whole: answer(200, completion(says)),
    'no-json': answer(200, says),
    'half-json': answer(200, `{"choices": ${says}`),
    'no-type': answer(200, says, { 'content-type': 'text/plain', 'x-note': says }),
    streamed: streamed(usageEvent(3, 4) + done),
    'streamed-badly': streamed(event(says)),
    'streamed-error': streamed(event({ error: { message: no, code: no, type: no } })),
    400: answer(400, refusal),
    401: answer(401, refusal),
    429: answer(429, refusal, { 'retry-after': '1' }),
    500: answer(500, refusal),
    503: answer(503, no, { 'content-type': 'text/html' }),
  }
  return (socket, { body }) => {
    const [last = ''] = JSON.stringify(body).match(/(?<=raw:)[\w-]+/) ?? []
    socket.write(replies[last] ?? answer(200, completion(says)))
  }
}

/** Settings files with a key in the wrong place: as a vendor, as a number, and in a line that is not YAML. */
const spoilt = {
  vendor: (settings: string) => settings.replace('vendor: openai', 'vendor: "${CANARY_KEY_OPENAI}"'),
  number: (settings: string, { misplacedKey }: Planted) => `${settings}limits: { attemptsMax: ${misplacedKey} }\n`,
  yaml: (settings: string, { misplacedKey }: Planted) => `${settings}exchange: { CNY: "${misplacedKey}\n`,
} as const
type Mistake = keyof typeof spoilt
export const mistakes = ['vendor', 'number', 'yaml'] as const satisfies readonly Mistake[]

export type CanaryWorld = {
  readonly secrets: Planted
  readonly receiver: Receiver
  /** Runs one gateway process, which crashes at the given crash point, if any. */
  serve(crash?: string): Promise<Served>
  /** Runs an operator's command. */
  command(args: readonly string[], variables?: Record<string, string>): Promise<void>
  /** Writes the settings file, correctly or with a mistake. */
  writeSettings(mistake?: Mistake): void
  /** Everything that the simulators were sent recently. */
  vendorCalls(): Promise<string>
  /** The names of the secrets that vendors are sent. */
  readonly vendorKeys: readonly string[]
  /** Makes the bucket fail, where results are stored in one. */
  breakBucket(): void
  /** Makes the database unreachable, where it is not a file. */
  cutDatabase(): Promise<void>
  /** Collects what is stored at this moment. Call it while no gateway runs. */
  gather(): Promise<void>
  /** Collects what was sent to other parties, at the very end. */
  gatherElsewhere(): Promise<void>
  close(): Promise<void>
}

export async function makeCanaryWorld(engine: Engine, places: Places): Promise<CanaryWorld> {
  const secrets = plant()
  const cli = makeCli()
  const port = await freePort()
  const raw = await startVendor(rawVendor(secrets))
  const receiver = await startReceiver()
  const sink = await startSink()
  const s3 = startTinyS3()
  const { url: databaseUrl, drop } = await makeDatabase(engine)
  const tap = databaseUrl === undefined ? undefined : await tapPostgres(databaseUrl)

  const simulators = startSandbox({ port: 0, models: () => simulatedModels(catalogue, channels) })
  const settings = settingsOf({
    engine,
    secrets,
    port,
    rawUrl: raw.baseUrl,
    s3,
    baseUrl: (id) => simulators.baseUrl(id),
  })
  const variables = variablesOf({ secrets, port, tap, sinkUrl: sink.url })
  const file = readConfigFile('turnpike.yaml', settings, variables)
  const catalogue = readCatalogue(file, true, systemClock)
  const channels = readChannels(file, variables)
  cli.write('turnpike.yaml', settings)

  const lives: Served[] = []
  // The simulators keep only the last thousand calls, and polls count too.
  const vendorCalls = async () => {
    const calls = await (await fetch(`${simulators.url}/__calls`)).text()
    places.add('a vendor', calls)
    return calls
  }
  return {
    secrets,
    receiver,
    async serve(crash) {
      const life = await cli.serve([], { ...variables, ...(crash !== undefined && { TURNPIKE_CRASH: crash }) })
      lives.push(life)
      return life
    },
    async command(args, more = {}) {
      const { out, err } = await cli.run(args, { ...variables, ...more })
      places.add('a command', out + err)
    },
    writeSettings(mistake) {
      cli.write('turnpike.yaml', mistake === undefined ? settings : spoilt[mistake](settings, secrets))
    },
    vendorCalls,
    vendorKeys: [...sold, 'kling'].map((id) => `${id}Key`),
    breakBucket: () => s3.failWith(503),
    cutDatabase: async () => tap?.close(),
    async gather() {
      const copy = temporaryFolder('canaries')
      cpSync(cli.folder, copy, { recursive: true })
      places.addFolder(copy, placeOf)
      const file = join(copy, 'data/turnpike.sqlite')
      const store = await openStore(databaseUrl === undefined ? { file } : { url: databaseUrl })
      await places.addTables(store)
      await store.close()
    },
    async gatherElsewhere() {
      for (const life of lives) places.add('the output', life.output())
      for (const { head, body } of raw.requests) places.add('a vendor', head + JSON.stringify(body))
      await vendorCalls()
      for (const { path, headers, body } of receiver.received) {
        places.add('a receiver', path + JSON.stringify(headers) + body)
      }
      for (const one of s3.seen) places.add('the bucket', JSON.stringify(one))
      for (const [key, { bytes }] of s3.objects) places.add('a kept result', Buffer.concat([Buffer.from(key), bytes]))
      places.add('a collector of traces', sink.said())
      if (tap !== undefined) places.add('what the database is told', tap.said())
    },
    async close() {
      await cli.close()
      await raw.stop()
      receiver.close()
      sink.stop()
      await s3.stop()
      await simulators.stop()
      await tap?.close()
      await drop()
    },
  }
}

/** The name of a file's place. Names of results are random, so they share one. */
function placeOf(path: string): string {
  if (/^data\/turnpike\.sqlite(?:-wal|-shm)?$/.test(path)) return 'the file of the database'
  if (path.startsWith('data/artifacts/')) return 'a kept result'
  if (path.startsWith('data/journal')) return 'the journal'
  return path
}

async function makeDatabase(engine: Engine) {
  if (engine === 'sqlite') return { url: undefined, drop: async () => {} }
  const server = await sharedPostgres()
  const url = await server.freshDatabase()
  return { url, drop: () => server.dropDatabase(url) }
}

function variablesOf(given: { secrets: Planted; port: number; tap: TappedPostgres | undefined; sinkUrl: string }) {
  const { secrets, port, tap, sinkUrl } = given
  const database = new URL(tap?.url ?? 'postgres://nobody')
  database.password = secrets.databasePassword
  return {
    PORT: String(port),
    TURNPIKE_BOOTSTRAP_KEY: secrets.clientKey,
    TURNPIKE_ADMIN_KEY: secrets.operatorKey,
    TURNPIKE_METRICS_KEY: secrets.metricsKey,
    TURNPIKE_SECRET: secrets.installationSecret,
    // If the gateway traced anything, it would send it there.
    OTEL_EXPORTER_OTLP_ENDPOINT: sinkUrl,
    OTEL_TRACES_EXPORTER: 'otlp',
    ...(tap !== undefined && { DATABASE_URL: database.href }),
    BUCKET_SECRET: secrets.bucketSecret,
    // Kling's simulator derives a key's secret from the key and accepts what is signed with it.
    CANARY_KEY_KLING: `${secrets.klingKey}:${secrets.klingKey}-secret`,
    ...Object.fromEntries(sold.map((id) => [`CANARY_KEY_${id.toUpperCase()}`, secrets[`${id}Key`]])),
  }
}

function settingsOf(given: {
  engine: Engine
  secrets: Planted
  port: number
  rawUrl: string
  s3: TinyS3
  baseUrl: (vendor: string) => string
}): string {
  const { engine, secrets, port, rawUrl, s3, baseUrl } = given
  const bucket = `endpoint: "${s3.endpoint}", bucket: results, region: eu-test, accessKeyId: AKTEST`
  return `sandbox: false
publicUrl: http://127.0.0.1:${port}
channels:
${sold.map((id) => `  - { id: ${id}, vendor: ${id}, baseUrl: "${baseUrl(id)}", keys: ["\${CANARY_KEY_${id.toUpperCase()}}"] }`).join('\n')}
  - { id: kling, vendor: kling, baseUrl: "${baseUrl('kling')}", keys: ["\${CANARY_KEY_KLING}"] }
  - { id: raw, vendor: compatible, baseUrl: "${rawUrl}", keys: ["${secrets.writtenKey}"] }
  - { id: nobody, vendor: compatible, baseUrl: "http://127.0.0.1:1/v1", keys: ["${secrets.writtenKey}"] }
models:
  - id: raw
    capability: chat
    channels: [{ channel: raw }]
    outputTokensMax: 1000
    prices: { inputPerMillion: "1", outputPerMillion: "10" }
  - { id: nobody, from: raw, channels: [{ channel: nobody }] }
  # Ended by its vendor, and so on sale only where a channel is named for it.
  - { id: imagen-4.0-generate-001, channels: [{ channel: google }] }
artifacts: ${engine === 'sqlite' ? '{ keep: false }' : `{ keep: true, s3: { ${bucket}, secretAccessKey: "\${BUCKET_SECRET}" } }`}
webhooks: { allowPrivate: true }
tasks: { pollSeconds: 0.1, doubtSeconds: 0.5 }
timeouts: { drainSeconds: 1 }
log: { level: info }
`
}

/** Records everything that is sent to it, in any protocol. */
async function startSink() {
  const heard: Buffer[] = []
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {}).on('data', (bytes: Buffer) => heard.push(bytes))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    said: () => Buffer.concat(heard),
    stop() {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}
