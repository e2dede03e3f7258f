import { describe, expect, test } from 'bun:test'
import { recordAudio } from './audio.ts'

// Tested by hand with Chromium 156, which plays every format here except raw samples, with the right length.
describe('a second of audio', () => {
  test('a wav file has a matching header before its samples', () => {
    const file = recordAudio('wav', 1_000)
    expect(file.toString('latin1', 0, 4) + file.toString('latin1', 8, 16)).toBe('RIFFWAVEfmt ')
    expect(file.readUInt32LE(4)).toBe(file.length - 8)
    expect([file.readUInt16LE(22), file.readUInt32LE(24), file.readUInt16LE(34)]).toEqual([1, 24_000, 16])
    expect(file.readUInt32LE(40)).toBe(48_000)
    expect(file.subarray(44)).toEqual(recordAudio('pcm', 1_000))
  })

  test('an mp3 file is a sequence of 24 ms frames', () => {
    const file = recordAudio('mp3', 1_000)
    expect(file.length).toBe(42 * 480)
    for (let at = 0; at < file.length; at += 480) expect(file.readUInt32BE(at)).toBe(0xfff3e4c4)
  })

  test('an aac file is a sequence of frames with correct lengths', () => {
    const file = recordAudio('aac', 1_000)
    let frames = 0
    for (let at = 0; at < file.length; frames += 1) {
      expect(file.readUInt16BE(at)).toBe(0xfff1)
      at += (file.readUIntBE(at + 3, 3) >> 5) & 0x1fff
    }
    expect(frames).toBe(24)
  })

  test('a flac file states its number of samples', () => {
    const file = recordAudio('flac', 1_000)
    expect(file.toString('latin1', 0, 4)).toBe('fLaC')
    expect(file.readUInt32BE(22)).toBe(42 * 576)
    expect(file.readUInt16BE(42)).toBe(0xfff8)
  })

  test('an opus file ends at its last sample', () => {
    const file = recordAudio('opus', 1_010)
    const last = file.subarray(file.lastIndexOf('OggS'))
    expect([last[5], last.readUInt32LE(6)]).toEqual([4, 51 * 960])
    expect(file.indexOf('OpusHead')).toBe(28)
  })
})
