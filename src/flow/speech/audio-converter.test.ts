import { describe, expect, test } from 'bun:test'
import type { Mp3Encoders } from '../../media/mp3.ts'
import { wavHead } from '../../media/wav.ts'
import { AudioConverter } from './audio-converter.ts'

/** An encoder that marks what it is given, so that the order can be seen. */
function recording() {
  const log: string[] = []
  const encoders: Mp3Encoders = {
    open({ rate }) {
      log.push(`open ${rate}`)
      return {
        async encode(samples) {
          log.push(`encode ${Buffer.from(samples).toString('hex')}`)
          return Uint8Array.of(0xee)
        },
        async end() {
          log.push('end')
          return Uint8Array.of(0xff)
        },
        close: () => log.push('close'),
      }
    },
    stop() {},
  }
  return { log, encoders }
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')
const bytes = (text: string) => Buffer.from(text, 'hex')
const pcm = { kind: 'pcm', rate: 24_000 } as const
const mono = { rate: 24_000, channels: 1 } as const

describe('the audio converter', () => {
  test('audio that comes in the requested format is passed through', async () => {
    const { log, encoders } = recording()
    const converter = new AudioConverter('mp3', encoders)
    expect(hex(await converter.push(bytes('010203'), { kind: 'ready' }))).toBe('010203')
    expect(await converter.end()).toHaveLength(0)
    expect(log).toEqual([])
  })

  test('pcm becomes mp3, with samples kept whole wherever the input is cut', async () => {
    const { log, encoders } = recording()
    const converter = new AudioConverter('mp3', encoders)
    for (const cut of ['01', '0203', '04050607']) await converter.push(bytes(cut), pcm)
    expect(hex(await converter.end())).toBe('ff')
    expect(log).toEqual(['open 24000', 'encode 0102', 'encode 03040506', 'end'])
  })

  test('pieces of wav are joined into one mp3 stream without their heads', async () => {
    const { log, encoders } = recording()
    const converter = new AudioConverter('mp3', encoders)
    const file = Buffer.concat([wavHead(mono, 4), bytes('01020304')])
    await converter.push(file, { kind: 'wav' })
    converter.endPiece()
    await converter.push(file.subarray(0, 46), { kind: 'wav' })
    await converter.push(file.subarray(46), { kind: 'wav' })
    expect(log).toEqual(['open 24000', 'encode 01020304', 'encode 0102', 'encode 0304'])
  })

  test('half a sample at the end of a piece is dropped', async () => {
    const { log, encoders } = recording()
    const converter = new AudioConverter('mp3', encoders)
    for (const piece of ['010203', '0405', '0607']) {
      await converter.push(bytes(piece), pcm)
      converter.endPiece()
    }
    expect(log).toEqual(['open 24000', 'encode 0102', 'encode 0405', 'encode 0607'])
  })

  test('pieces of pcm become one streamed wav with a single head', async () => {
    const converter = new AudioConverter('wav', recording().encoders)
    const first = await converter.push(bytes('0102'), pcm)
    converter.endPiece()
    const second = await converter.push(bytes('0304'), pcm)
    expect(hex(first)).toBe(`${hex(wavHead(mono))}0102`)
    expect(hex(second)).toBe('0304')
  })

  test.each([1, 44, 45, 46])("a wav is given our own head when the vendor's head is cut at byte %d", async (cut) => {
    const converter = new AudioConverter('wav', recording().encoders)
    const file = Buffer.concat([wavHead(mono, 4), bytes('01020304')])
    const shaped = [file.subarray(0, cut), file.subarray(cut)].map((part) => converter.push(part, { kind: 'wav' }))
    expect(hex(Buffer.concat(await Promise.all(shaped)))).toBe(`${hex(wavHead(mono))}01020304`)
  })

  test('a change of the sample rate between pieces is refused', async () => {
    const converter = new AudioConverter('pcm', recording().encoders)
    await converter.push(bytes('0102'), pcm)
    converter.endPiece()
    expect(converter.push(bytes('0304'), { kind: 'pcm', rate: 16_000 })).rejects.toThrow('changed the audio format')
  })

  test('a converter that is closed twice closes its encoder once', async () => {
    const { log, encoders } = recording()
    const converter = new AudioConverter('mp3', encoders)
    await converter.push(bytes('0102'), pcm)
    converter.close()
    converter.close()
    expect(log.slice(2)).toEqual(['close'])
  })
})

test.each(['494433040000', 'fff340c40102'])(
  'mp3 from a server that was asked for wav is passed through if mp3 was requested: %s',
  async (file) => {
    const { log, encoders } = recording()
    const converter = new AudioConverter('mp3', encoders)
    for (const piece of [file, '0102']) expect(hex(await converter.push(bytes(piece), { kind: 'wav' }))).toBe(piece)
    converter.endPiece()
    const whole = Buffer.concat([wavHead(mono, 2), bytes('0304')])
    expect(hex(await converter.push(whole, { kind: 'wav' }))).toBe('ee')
    expect(log).toEqual(['open 24000', 'encode 0304'])
    const asWav = new AudioConverter('wav', encoders).push(bytes(file.padEnd(200, '0')), { kind: 'wav' })
    expect(await asWav.catch(() => 'refused')).toBe('refused')
  },
)
