import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../test/support/gateway.ts'
import { handTimers } from '../../test/support/hand-timers.ts'
import { standingClock } from '../../test/support/movable-clock.ts'
import { startTinyS3 } from '../../test/support/s3.ts'
import { GatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import { macFor } from '../base/secret.ts'
import { fileSchema } from '../config/schema.ts'
import { openArtifacts, type Artifacts } from './artifacts.ts'
import { hourOf } from './names.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'

const hourMs = 60 * 60 * 1000

let dataFolder: string
let artifacts: Artifacts
let clock: ReturnType<typeof standingClock>
let timers: ReturnType<typeof handTimers>
let warnings: string[]

beforeEach(() => {
  dataFolder = temporaryFolder('artifacts')
  clock = standingClock()
  timers = handTimers()
  warnings = []
  open()
})
afterEach(() => artifacts.close())

function open(settings: Record<string, unknown> = {}): void {
  const log: Log = {
    info: () => {},
    warn: ({ cause }, message) => warnings.push(`${message} ${cause}`),
    error: () => {},
  }
  artifacts = openArtifacts({
    settings: fileSchema.parse({ artifacts: settings }).artifacts,
    dataFolder,
    publicUrl: 'https://gateway.test/base',
    mac: macFor(Buffer.alloc(32), 'artifact-link'),
    clock,
    timers,
    log,
  })
}

/** Opens the folder again with other settings, as the next process would. */
async function reopen(settings: Record<string, unknown>): Promise<void> {
  await artifacts.close()
  open(settings)
}

const about = { mediaType: 'image/png', accountId: 'acc_1' }
const bytesOf = (length: number) => new Uint8Array(length).fill(7)
const streamOf = (...chunks: readonly Uint8Array[]) =>
  new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk)
      controller.close()
    },
  })

/** A stream that gives bytes until it is cancelled. */
function endless() {
  const source = { isCancelled: false }
  const stream = new ReadableStream<Uint8Array>({
    pull: (controller) => controller.enqueue(bytesOf(100)),
    cancel() {
      source.isCancelled = true
    },
  })
  return Object.assign(source, { stream })
}

function linkIn(url: string) {
  const { pathname, searchParams } = new URL(url)
  const id = pathname.split('/').at(-1) ?? ''
  return { id, expires: searchParams.get('expires'), signature: searchParams.get('signature') }
}

async function read(url: string): Promise<Uint8Array> {
  const found = await artifacts.find(linkIn(url))
  return new Response(await found.read(0, found.bytes)).bytes()
}

async function thrownBy(work: Promise<unknown>): Promise<GatewayError> {
  const thrown = await work.catch((error: unknown) => error)
  if (!(thrown instanceof GatewayError)) throw new Error(`not ours: ${String(thrown)}`)
  return thrown
}

/** One step of the sweeper. */
async function swept(): Promise<void> {
  timers.fire()
  await until(() => timers.waiting.length > 0)
}

/** Files under the folder, those that are on their way included. */
function files(): string[] {
  return readdirSync(dataFolder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
}

describe('a result', () => {
  test('a result in one piece or as a stream is found by its link', async () => {
    for (const result of [bytesOf(1000), streamOf(bytesOf(400), bytesOf(600)), bytesOf(0)]) {
      const length = result instanceof Uint8Array ? result.length : 1000
      const { url, expiresAt } = await artifacts.keep(result, about)
      expect(url).toMatch(
        /^https:\/\/gateway\.test\/base\/artifacts\/art_[0-9a-f]{32}\.png\?expires=\d+&signature=[\w-]{43}$/,
      )
      expect(expiresAt % 1000).toBe(0)
      expect(Math.abs(expiresAt - clock.now() - 24 * hourMs)).toBeLessThan(2_000)
      expect(await artifacts.find(linkIn(url))).toMatchObject({ bytes: length, mediaType: 'image/png', expiresAt })
      expect(await read(url)).toEqual(bytesOf(length))
    }
  })

  test('a result is stored in a file that only its owner can read', async () => {
    await artifacts.keep(bytesOf(10), about)
    const [file = ''] = files()
    expect(file).toMatch(new RegExp(`/artifacts/${hourOf(clock.now() + 24 * hourMs)}/art_[0-9a-f]{32}\\.png$`))
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(join(file, '..')).mode & 0o777).toBe(0o700)
  })

  test.each([
    ['IMAGE/JPEG; q=1', 'jpg', 'image/jpeg'],
    ['audio/x-wav', 'wav', 'audio/wav'],
    ['video/mp4', 'mp4', 'video/mp4'],
    ['image/svg+xml', 'bin', 'application/octet-stream'],
    ['text/html', 'bin', 'application/octet-stream'],
    ['', 'bin', 'application/octet-stream'],
  ])('a result of type %j has a name that ends in %s', async (mediaType, ending, served) => {
    const { url } = await artifacts.keep(bytesOf(1), { ...about, mediaType })
    expect(linkIn(url).id).toEndWith(`.${ending}`)
    expect((await artifacts.find(linkIn(url))).mediaType).toBe(served)
  })

  test('a result whose stream fails leaves nothing behind, and fails with the error of the stream', async () => {
    const failing = new ReadableStream<Uint8Array>({
      pull(controller) {
        controller.enqueue(bytesOf(10))
        controller.error(new GatewayError('upstream-failed', 'The vendor broke off.'))
      },
    })
    expect(await thrownBy(artifacts.keep(failing, about))).toMatchObject({ kind: 'upstream-failed' })
    expect(files()).toEqual([])
  })

  test('a result is kept even if the folder was deleted meanwhile', async () => {
    await artifacts.keep(bytesOf(10), about)
    rmSync(join(dataFolder, 'artifacts'), { recursive: true })
    const kept = await Promise.all([1, 2, 3].map((length) => artifacts.keep(bytesOf(length), about)))
    expect(await Promise.all(kept.map(async ({ url }) => (await read(url)).length))).toEqual([1, 2, 3])
  })

  test('a result that cannot be written fails as overloaded, and the cause is logged', async () => {
    writeFileSync(join(dataFolder, 'artifacts'), 'in the way')
    for (const result of [bytesOf(10), streamOf(bytesOf(10))]) {
      const { kind, details } = await thrownBy(artifacts.keep(result, about))
      expect([kind, details.code]).toEqual(['overloaded', 'artifacts_unreachable'])
      expect(warnings.at(-1)).toMatch(/ENOTDIR|EEXIST/)
    }
  })

  test('a result that is gone from the disk is not found', async () => {
    const { url } = await artifacts.keep(bytesOf(1), about)
    for (const file of files()) rmSync(file)
    expect(await thrownBy(artifacts.find(linkIn(url)))).toMatchObject({
      kind: 'not-found',
      details: { code: 'artifact_not_found' },
    })
  })
})

describe('a link', () => {
  test('a link works until its last second and no longer', async () => {
    const { url, expiresAt } = await artifacts.keep(bytesOf(1), about)
    clock.advance(expiresAt - clock.now() - 1)
    expect(await read(url)).toHaveLength(1)
    clock.advance(1)
    expect((await thrownBy(artifacts.find(linkIn(url)))).details.code).toBe('link_expired')
  })

  test('a link that differs in any way from the one that was made is invalid', async () => {
    const { url } = await artifacts.keep(bytesOf(1), about)
    const other = linkIn((await artifacts.keep(bytesOf(1), about)).url)
    const good = linkIn(url)
    const { id, expires, signature } = good
    const bad = [
      { ...good, id: other.id },
      { ...good, id: id.replace('.png', '.mp4') },
      { ...good, id: `${id}/../${id}` },
      { ...good, expires: String(Number(expires) + 1) },
      { ...good, expires: `0${expires}` },
      { ...good, expires: `${expires}.0` },
      { ...good, expires: null },
      { ...good, signature: null },
      { ...good, signature: '' },
      { ...good, signature: `${signature}=` },
      { ...good, signature: `${signature} ` },
      { ...good, signature: signature?.slice(0, -1) ?? null },
      { ...good, signature: Buffer.from(signature ?? '', 'base64url').toString('hex') },
      { ...good, signature: macFor(Buffer.alloc(32), 'key-digest')(`${id}\n${expires}`).toString('base64url') },
    ]
    for (const link of bad) {
      expect({ link, code: (await thrownBy(artifacts.find(link))).details.code }).toEqual({
        link,
        code: 'invalid_link',
      })
    }
    expect(await read(url)).toHaveLength(1)
  })
})

describe('the room for results', () => {
  const full = { kind: 'overloaded', details: { code: 'artifacts_full' } }

  test('the room is never exceeded, by one result or by many at once', async () => {
    await reopen({ bytesMax: 2000 })
    expect(await thrownBy(artifacts.keep(bytesOf(2001), about))).toMatchObject(full)
    expect(warnings).toEqual([expect.stringContaining('artifacts.bytesMax of 2000 is used up')])
    const kept = await Promise.allSettled(
      Array.from({ length: 10 }, () => artifacts.keep(streamOf(bytesOf(300), bytesOf(300)), about)),
    )
    expect(kept.filter(({ status }) => status === 'fulfilled').length).toBeLessThanOrEqual(3)
    expect(files().reduce((sum, file) => sum + statSync(file).size, 0)).toBeLessThanOrEqual(2000)
    // Refused results do not keep the room that they had taken.
    const left = 2000 - files().length * 600
    await artifacts.keep(bytesOf(left), about)
    expect(await thrownBy(artifacts.keep(bytesOf(1), about))).toMatchObject(full)
  })

  test('the next process counts the room anew and deletes unfinished results', async () => {
    await artifacts.keep(bytesOf(600), about)
    const incoming = join(dataFolder, 'artifacts', 'incoming')
    mkdirSync(incoming, { recursive: true })
    writeFileSync(join(incoming, 'left'), bytesOf(5000))
    await reopen({ bytesMax: 1024 })
    expect(await thrownBy(artifacts.keep(bytesOf(500), about))).toMatchObject(full)
    await artifacts.keep(bytesOf(424), about)
    expect(readdirSync(incoming)).toEqual([])
  })

  test('a result that cannot be put in its place takes up none of the room', async () => {
    await reopen({ bytesMax: 1024, hours: 1 })
    const inTheWay = join(dataFolder, 'artifacts', hourOf(clock.now() + hourMs))
    await artifacts.keep(bytesOf(1), about)
    rmSync(inTheWay, { recursive: true })
    writeFileSync(inTheWay, '')
    expect(await thrownBy(artifacts.keep(bytesOf(1000), about))).toMatchObject({ kind: 'overloaded' })
    rmSync(inTheWay)
    await artifacts.keep(bytesOf(1000), about)
    expect(readdirSync(join(dataFolder, 'artifacts', 'incoming'))).toEqual([])
  })

  test('the room of files deleted by hand is free again after the next sweep', async () => {
    await reopen({ bytesMax: 1024 })
    await artifacts.keep(bytesOf(1000), about)
    expect(await thrownBy(artifacts.keep(bytesOf(1000), about))).toMatchObject(full)
    for (const file of files()) rmSync(file)
    expect(await thrownBy(artifacts.keep(bytesOf(1000), about))).toMatchObject(full)
    await swept()
    await artifacts.keep(bytesOf(1000), about)
    expect(await thrownBy(artifacts.keep(bytesOf(1000), about))).toMatchObject(full)
    await swept()
    expect(await thrownBy(artifacts.keep(bytesOf(1000), about))).toMatchObject(full)
  })

  test('the source of a result that does not fit is cancelled', async () => {
    await reopen({ bytesMax: 1024 })
    const source = endless()
    expect(await thrownBy(artifacts.keep(source.stream, about))).toMatchObject(full)
    expect(source.isCancelled).toBe(true)
    expect(files()).toEqual([])
    await artifacts.keep(bytesOf(1024), about)
  })

  test('the source of a result that cannot be written is cancelled', async () => {
    writeFileSync(join(dataFolder, 'artifacts'), 'in the way')
    const source = endless()
    expect(await thrownBy(artifacts.keep(source.stream, about))).toMatchObject({ kind: 'overloaded' })
    expect(source.isCancelled).toBe(true)
  })
})

describe('the sweeper', () => {
  test('the sweeper keeps valid results and deletes expired ones in small steps', async () => {
    await reopen({ bytesMax: 3000 })
    const old = await Promise.all(Array.from({ length: 150 }, () => artifacts.keep(bytesOf(10), about)))
    clock.advance(3 * hourMs)
    const young = await artifacts.keep(bytesOf(10), about)
    await swept()
    expect(files()).toHaveLength(151)
    clock.advance(23 * hourMs)
    await swept()
    expect(files()).toHaveLength(51)
    expect(timers.waiting).toEqual([1_000])
    await swept()
    expect(files()).toHaveLength(1)
    expect(timers.waiting).toEqual([600_000])
    expect(readdirSync(join(dataFolder, 'artifacts')).toSorted()).toHaveLength(2) // one hour, and `incoming`
    expect(await read(young.url)).toHaveLength(10)
    expect((await thrownBy(artifacts.find(linkIn(old[0]?.url ?? '')))).details.code).toBe('link_expired')
    // The room of the deleted results is free again.
    await artifacts.keep(bytesOf(2990), about)
  })

  test('the sweeper keeps a result until shortly after it expires, and files that are not results', async () => {
    const minuteMs = hourMs / 60
    // Two minutes before a full hour, which is also when a result that is kept now expires.
    clock.advance(hourMs - (clock.now() % hourMs) + 58 * minuteMs)
    const { url } = await artifacts.keep(bytesOf(10), about)
    const others = join(dataFolder, 'artifacts', '0-notes')
    mkdirSync(others)
    writeFileSync(join(others, 'a'), 'not ours')
    clock.advance(24 * hourMs - 3 * minuteMs)
    await swept()
    expect(await read(url)).toHaveLength(10)
    // A client that opened the link in time may still be reading.
    clock.advance(10 * minuteMs)
    await swept()
    expect(files()).toHaveLength(2)
    clock.advance(6 * minuteMs)
    await swept()
    expect(files()).toEqual([join(others, 'a')])
  })

  test('a sweeper that is closed in the middle of a step does not go on', async () => {
    timers.fire()
    await artifacts.close()
    expect(timers.waiting).toEqual([])
  })

  test('the sweeper counts the room correctly when it is the first to look', async () => {
    await artifacts.keep(bytesOf(600), about)
    clock.advance(26 * hourMs)
    await reopen({ bytesMax: 1024 })
    await swept()
    expect(files()).toEqual([])
    expect((await thrownBy(artifacts.keep(bytesOf(1025), about))).details.code).toBe('artifacts_full')
    await artifacts.keep(bytesOf(1024), about)
  })

  test('the sweeper leaves other files alone, and goes on after a failure', async () => {
    const folder = join(dataFolder, 'artifacts')
    mkdirSync(join(folder, '2001010100', 'not-a-file'), { recursive: true })
    writeFileSync(join(folder, 'notes.txt'), 'mine')
    await swept()
    expect(readFileSync(join(folder, 'notes.txt'), 'utf8')).toBe('mine')
    expect(warnings).toEqual([expect.stringContaining('expired results cannot be deleted at the moment')])
    expect(timers.waiting).toEqual([600_000])
  })

  test('a failed sweep and a failed write both log why the bucket cannot be reached', async () => {
    const credentials = { accessKeyId: 'AKTEST', secretAccessKey: 'a-secret-for-tests' }
    await reopen({ s3: { endpoint: 'http://127.0.0.1:1', bucket: 'results', ...credentials } })
    await swept()
    await thrownBy(artifacts.keep(bytesOf(10), about))
    expect(warnings).toEqual([
      expect.stringMatching(/^expired results cannot be deleted at the moment .*ConnectionRefused/),
      expect.stringMatching(/^Kept results cannot be reached at the moment\. .*ConnectionRefused/),
    ])
  })

  test('a sweeper that is closed while its bucket hangs ends without a warning', async () => {
    const s3 = startTinyS3()
    const credentials = { region: 'eu-test', accessKeyId: 'AKTEST', secretAccessKey: 'a-secret-for-tests' }
    await reopen({ s3: { endpoint: s3.endpoint, bucket: 'results', ...credentials } })
    s3.hang()
    timers.fire()
    await until(() => s3.seen.length > 0)
    await artifacts.close()
    expect([timers.waiting, warnings]).toEqual([[], []])
    await s3.stop()
  })

  test('a sweeper that is closed has no timer left', async () => {
    await artifacts.close()
    expect(timers.waiting).toEqual([])
  })
})

const keepPrivate = () => artifacts.keepPrivate(bytesOf(800), 'acc', clock.now() + hourMs)

test('bytes that could not be laid aside take up none of the room', async () => {
  await reopen({ bytesMax: 8_000 })
  const folder = join(dataFolder, 'artifacts')
  rmSync(folder, { recursive: true, force: true })
  writeFileSync(folder, 'in the way')
  expect(await keepPrivate().catch(() => 'failed')).toBe('failed')
  rmSync(folder)
  expect(await keepPrivate()).toBeString()
  expect(await keepPrivate()).toBeUndefined()
})
