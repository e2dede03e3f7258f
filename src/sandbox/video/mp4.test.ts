import { describe, expect, test } from 'bun:test'
import { type Clip, writeMp4 } from './mp4.ts'
import { readMp4 } from './testing.ts'

const clip: Clip = { width: 1280, height: 720, colour: [4, -6, 7], frames: 120, sound: true }

/** The boxes at the top of a file or of another box. */
function boxesIn(bytes: Buffer): { name: string; body: Buffer }[] {
  const boxes = []
  for (let at = 0; at < bytes.length;) {
    const size = bytes.readUInt32BE(at)
    boxes.push({ name: bytes.toString('latin1', at + 4, at + 8), body: bytes.subarray(at + 8, at + size) })
    at += size
  }
  return boxes
}

// ffmpeg 5.1 decoded these without a warning at 1280x720, 1470x630, 1920x1080 and 4398x1886.
describe('an MP4 file', () => {
  test('the file consists of whole boxes, with the index before the data', () => {
    const file = boxesIn(Buffer.from(writeMp4(clip)))
    expect(file.map(({ name }) => name)).toEqual(['ftyp', 'moov', 'mdat'])
    expect(boxesIn(file[1]?.body ?? Buffer.alloc(0)).map(({ name }) => name)).toEqual(['mvhd', 'trak', 'trak'])
  })

  test.each([
    [{ ...clip }, { width: 1280, height: 720, ms: 5_000, tracks: 2 }],
    [
      { ...clip, width: 1470, height: 630, frames: 24, sound: false },
      { width: 1470, height: 630, ms: 1_000, tracks: 1 },
    ],
  ])('the file states its size, duration and tracks', (wish, facts) => {
    expect(readMp4(writeMp4(wish))).toEqual(facts)
  })

  test('the index points at the first frame', () => {
    const file = Buffer.from(writeMp4(clip))
    const offset = file.readUInt32BE(file.indexOf('stco') + 12)
    // The length of a unit, then the header of a frame that refers to no other.
    expect(file[offset + 4]).toBe(0x65)
    expect(file.readUInt32BE(file.indexOf('stsz') + 12)).toBe(120)
  })

  test('the same clip yields the same small file', () => {
    expect(writeMp4(clip)).toEqual(writeMp4(clip))
    expect(writeMp4(clip).length).toBeLessThan(10_000)
  })
})
