import { afterAll, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { createMp3Encoder } from 'wasm-media-encoders'
import { makeMp3Encoders } from './mp3.ts'

const encoders = makeMp3Encoders()
afterAll(() => encoders.stop())

const rate = 24_000

/** The samples of a tone of this length. */
function tone(ms: number, channels: 1 | 2 = 1): Uint8Array {
  const samples = new Int16Array((rate / 1_000) * ms * channels)
  samples.forEach((_, at) => {
    samples[at] = Math.round(8_000 * Math.sin((at / channels) * 0.05))
  })
  return new Uint8Array(samples.buffer)
}

/** Counts frames of MPEG-2 layer III at 24 kHz, each found where the one before it ends; each has 24 ms of audio. */
function framesOf(bytes: Uint8Array): number {
  const kilobits = [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160]
  let frames = 0
  for (let at = 0; at < bytes.length; frames++) {
    expect([bytes[at], (bytes[at + 1] ?? 0) & 0xfe]).toEqual([0xff, 0xf2])
    const third = bytes[at + 2] ?? 0
    at += Math.floor((72 * (kilobits[third >> 4] ?? 0) * 1_000) / rate) + ((third >> 1) & 1)
  }
  return frames
}

async function encode(ms: number, channels: 1 | 2 = 1): Promise<Uint8Array> {
  const encoding = encoders.open({ rate, channels })
  const audio = tone(ms, channels)
  const parts: Uint8Array[] = []
  for (let at = 0; at < audio.length; at += 12_000) parts.push(await encoding.encode(audio.subarray(at, at + 12_000)))
  expect(parts.slice(1).every(({ length }) => length > 0)).toBe(true)
  return Buffer.concat([...parts, await encoding.end()])
}

test.each([1, 2] as const)('audio of %d channels is encoded as it comes, to the same length', async (channels) => {
  const frames = framesOf(await encode(2_000, channels))
  expect(frames * 24).toBeGreaterThanOrEqual(2_000)
  expect(frames * 24).toBeLessThan(2_150)
})

// Bytes or channels in another order would be noise of the same length.
test.each([1, 2] as const)(
  'audio of %d channels is what the encoder makes of the samples of each',
  async (channels) => {
    const samples = Int16Array.from({ length: rate * channels }, (_, at) =>
      Math.round(8_000 * Math.sin((at % channels === 0 ? 0.03 : 0.07) * at)),
    )
    const planes = Array.from({ length: channels }, (_, channel) =>
      Float32Array.from({ length: rate }, (__, frame) => (samples[frame * channels + channel] ?? 0) / 32_768),
    )
    const encoder = await createMp3Encoder()
    encoder.configure({ sampleRate: rate, channels, bitrate: 96 })
    const expected = [encoder.encode(planes).slice(), encoder.finalize().slice()]
    const encoding = encoders.open({ rate, channels })
    const encoded = [await encoding.encode(new Uint8Array(samples.buffer)), await encoding.end()]
    expect(Buffer.concat(encoded).equals(Buffer.concat(expected))).toBe(true)
  },
)

test('concurrent encodings do not mix, and a reused encoder keeps nothing of the last one', async () => {
  const alone = await encode(500)
  const [first, second] = await Promise.all([encode(500), encode(500)])
  expect(Buffer.from(first).equals(alone)).toBe(true)
  expect(Buffer.from(second).equals(alone)).toBe(true)
  expect(Buffer.from(await encode(500)).equals(alone)).toBe(true)
})

test('an encoding that is closed leaves its encoder to others', async () => {
  const encoding = encoders.open({ rate, channels: 1 })
  await encoding.encode(tone(100))
  encoding.close()
  // Not with `rejects`, because Bun receives no messages from other threads while it waits there.
  const failure: unknown = await encoding.encode(tone(100)).catch((error: unknown) => error)
  expect(String(failure)).toContain('no such encoding')
  expect((await encode(100)).length).toBeGreaterThan(0)
})

test('audio that waits for the encoder is dropped when its encoding is closed', async () => {
  const busy = encoders.open({ rate, channels: 1 })
  await busy.encode(tone(100))
  let isBusy = true
  const long = busy.encode(tone(30_000)).finally(() => (isBusy = false))
  const abandoned = Array.from({ length: 20 }, () => encoders.open({ rate, channels: 1 }))
  const failures = abandoned.map((each) => each.encode(tone(2_000)).catch((error: unknown) => String(error)))
  for (const each of abandoned) each.close()
  expect(await Promise.all(failures)).toEqual(abandoned.map(() => 'Error: the encoding was closed'))
  expect(isBusy).toBe(true)
  expect((await long).length).toBeGreaterThan(0)
  expect(framesOf(Buffer.concat([await encode(500)]))).toBeGreaterThan(20)
  busy.close()
})

const openMono = () => encoders.open({ rate, channels: 1 })

test('a closed encoding takes nothing from others that are at work or wait', async () => {
  const [long, short, closed] = [openMono(), openMono(), openMono()]
  await Promise.all([long, short, closed].map((each) => each.encode(tone(500))))
  // More than the thread is given at once.
  const kept = [long.encode(tone(30_000)), ...Array.from({ length: 6 }, () => short.encode(tone(500)))]
  const dropped = closed.encode(tone(500)).catch((error: unknown) => String(error))
  await new Promise(setImmediate)
  closed.close()
  expect(await dropped).toBe('Error: the encoding was closed')
  expect((await Promise.all(kept)).map(({ length }) => length > 0)).toEqual(kept.map(() => true))
  for (const each of [long, short]) each.close()
})

/** Encodes in a process that has as many files open as it is allowed, and again after it has closed them. */
const outOfFiles = `
  import { closeSync, openSync } from 'node:fs'
  import { makeMp3Encoders } from ${JSON.stringify(join(import.meta.dir, 'mp3.ts'))}
  const encoders = makeMp3Encoders()
  const encode = async () => {
    const encoding = encoders.open({ rate: 24_000, channels: 1 })
    return (await encoding.encode(new Uint8Array(48_000))).length > 0
  }
  const files = []
  try {
    for (;;) files.push(openSync('/dev/null', 'r'))
  } catch {}
  console.log(await encode().catch((error) => error.code))
  for (const file of files) closeSync(file)
  console.log(await encode())
  encoders.stop()
`

test('when no more files can be opened, an encoding fails but not the process', () => {
  const limited = ['-c', 'ulimit -n 64 && exec "$0" -e "$1"', process.execPath, outOfFiles]
  const { status, stdout, stderr } = spawnSync('sh', limited, { encoding: 'utf8' })
  expect({ status, said: stdout.split('\n'), stderr }).toEqual({ status: 0, said: ['EMFILE', 'true', ''], stderr: '' })
})
