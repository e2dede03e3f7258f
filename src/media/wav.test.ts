import { describe, expect, test } from 'bun:test'
import { wavHead, WavReader } from './wav.ts'

const mono = { rate: 24_000, channels: 1 } as const
const sound = Buffer.from(Array.from({ length: 1_000 }, (_, at) => at % 251))
const file = Buffer.concat([wavHead(mono, sound.length), sound])

function readIn(bytes: Uint8Array, chunkBytes: number) {
  const reader = new WavReader()
  const read: Uint8Array[] = []
  for (let at = 0; at < bytes.length; at += chunkBytes) read.push(reader.push(bytes.subarray(at, at + chunkBytes)))
  return { samples: reader.samples, sound: Buffer.concat(read) }
}

describe('a wav file', () => {
  test.each([1, 7, 44, 45, 5_000])('a wav file is read in chunks of %d bytes', (chunkBytes) => {
    expect(readIn(file, chunkBytes)).toEqual({ samples: mono, sound })
  })

  test('the head of a wav file states its lengths, and how fast and in what steps its samples are played', () => {
    const head = Buffer.from(wavHead({ rate: 48_000, channels: 2 }, 1_000))
    expect([head.readUInt32LE(4), head.readUInt32LE(40)]).toEqual([1_036, 1_000])
    expect([head.readUInt32LE(28), head.readUInt16LE(32)]).toEqual([192_000, 4])
    expect(head.length).toBe(44)
  })

  test('a wav file of unknown length is read to its end', () => {
    for (const length of [undefined, 0]) {
      expect(readIn(Buffer.concat([wavHead(mono, length), sound]), 100)).toEqual({ samples: mono, sound })
    }
  })

  test('other chunks before and after the samples are skipped', () => {
    const list = Buffer.from('LIST\x03\0\0\0abc\0', 'latin1')
    const odd = Buffer.concat([file.subarray(0, 36), list, file.subarray(36), list])
    expect(readIn(odd, 13)).toEqual({ samples: mono, sound })
  })

  test.each([
    ['is not a wav file', Buffer.alloc(100, 'ID3')],
    ['is another kind of RIFF file', Buffer.from(file).fill('AVI ', 8, 12)],
    ['does not describe its samples', Buffer.concat([file.subarray(0, 12), file.subarray(36)])],
    ['has 8-bit samples', Buffer.from(file).fill(8, 34, 35)],
    [
      'has no samples within its first bytes',
      Buffer.concat([file.subarray(0, 36), Buffer.alloc(300_000, 'JUNK\x08\0\0\0')]),
    ],
  ])('a file that %s is refused', (_, bytes) => {
    expect(() => readIn(bytes, 4_096)).toThrow('an unknown format')
  })
})
