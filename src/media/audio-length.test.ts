import { describe, expect, test } from 'bun:test'
import type { AudioForm } from '../capabilities/speech.ts'
import { recordAudio, type AudioFormat } from '../sandbox/files/audio.ts'
import { AudioLength } from './audio-length.ts'
import { wavHead } from './wav.ts'

/** Pushes the audio in pieces of an odd number of bytes, because network packets may end anywhere. */
function lengthOf(audio: Uint8Array, form: AudioForm, bytesEach = 7): AudioLength {
  const length = new AudioLength()
  for (let at = 0; at < audio.length; at += bytesEach) length.push(audio.subarray(at, at + bytesEach), form)
  return length
}

const ready: AudioForm = { kind: 'ready' }

describe('the length of audio', () => {
  test.each<[AudioFormat, AudioForm]>([
    ['pcm', { kind: 'pcm', rate: 24_000 }],
    ['wav', { kind: 'wav' }],
    ['mp3', ready],
  ])('the length of %s is known, also of a part', (format, form) => {
    const audio = recordAudio(format, 4_800)
    expect(lengthOf(audio, form).seconds).toBeCloseTo(4.8, 6)
    expect(lengthOf(audio.subarray(0, audio.length / 4), form).seconds).toBeCloseTo(1.2, 2)
  })

  test.each<AudioFormat>(['opus', 'aac', 'flac'])('the length of %s is unknown, its bytes are counted', (format) => {
    const audio = recordAudio(format, 4_800)
    expect(lengthOf(audio, ready)).toMatchObject({ seconds: undefined, bytes: audio.length })
  })

  test('the length depends on the number of channels and the sample rate', () => {
    const samples = { rate: 48_000, channels: 2 } as const
    const wav = Buffer.concat([wavHead(samples), Buffer.alloc(96_000)])
    expect(lengthOf(wav, { kind: 'wav' }).seconds).toBe(0.5)
    expect(lengthOf(Buffer.alloc(8_000), { kind: 'pcm', rate: 8_000 }).seconds).toBe(0.5)
  })

  test('the length of an invalid wav is unknown, and its bytes are counted', () => {
    expect(lengthOf(Buffer.alloc(100, 1), { kind: 'wav' }).seconds).toBeUndefined()
    expect(lengthOf(Buffer.alloc(100, 1), { kind: 'wav' }).bytes).toBeGreaterThan(0)
  })

  test.each([
    [[0xff, 0xfb, 0x90, 0x00], 16_000],
    [[0xff, 0xf3, 0xe4, 0xc4], 20_000],
    [[0xff, 0xe3, 0x10, 0x00], 1_000],
    [[0xff, 0xfb, 0xf0, 0x00], undefined],
    [[0xff, 0xfb, 0x00, 0x00], undefined],
    [[0xff, 0xf1, 0x60, 0x40], undefined],
    [[0xff, 0xeb, 0x90, 0x00], undefined],
    [[0x49, 0x44, 0x33, 0x04], undefined],
  ])('mp3 with a first frame of %j has %p bytes a second', (frame, rate) => {
    const { bytes, seconds } = lengthOf(Buffer.concat([Buffer.from(frame), Buffer.alloc(996)]), ready, 500)
    expect([bytes, seconds]).toEqual([1_000, rate === undefined ? undefined : 1_000 / rate])
  })
})
