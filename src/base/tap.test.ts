import { describe, expect, test } from 'bun:test'
import { tap } from './tap.ts'

type Step = 'bytes' | 'end' | 'throw'

/** A source that follows a script, and notes what it is told. */
function scripted(...steps: readonly Step[]) {
  const told: string[] = []
  const left = [...steps]
  return {
    told,
    pull(): Promise<Uint8Array | undefined> {
      told.push('pull')
      const step = left.shift()
      if (step === 'throw') return Promise.reject(new Error('broken'))
      return Promise.resolve(step === 'bytes' ? Uint8Array.of(1) : undefined)
    },
    gone() {
      told.push('gone')
    },
  }
}

const signal = () => new AbortController().signal
const count = (told: readonly string[], what: string) => told.filter((word) => word === what).length

describe('the end is told exactly once', () => {
  test('read to the end: never gone', async () => {
    const source = scripted('bytes', 'bytes', 'end')
    const abort = new AbortController()
    const body = tap(source, abort.signal)
    expect((await new Response(body).bytes()).length).toBe(2)
    abort.abort()
    expect(source.told).toEqual(['pull', 'pull', 'pull'])
  })

  test('left before the first pull', async () => {
    const source = scripted('bytes')
    await tap(source, signal()).cancel()
    expect(source.told).toEqual(['gone'])
  })

  test('aborted before the first pull', async () => {
    const source = scripted('bytes')
    const abort = new AbortController()
    const body = tap(source, abort.signal)
    abort.abort()
    expect(source.told).toEqual(['gone'])
    expect(await new Response(body).text()).toBe('')
  })

  test('aborted before it was made', async () => {
    const source = scripted('bytes')
    const body = tap(source, AbortSignal.abort())
    expect(source.told).toEqual(['gone'])
    expect(await new Response(body).text()).toBe('')
    expect(source.told).toEqual(['gone'])
  })

  test('left in the middle', async () => {
    const source = scripted('bytes', 'bytes')
    const reader = tap(source, signal()).getReader()
    await reader.read()
    await reader.cancel()
    expect(source.told).toEqual(['pull', 'gone'])
  })

  test('aborted and left', async () => {
    const source = scripted('bytes', 'bytes')
    const abort = new AbortController()
    const reader = tap(source, abort.signal).getReader()
    await reader.read()
    abort.abort()
    await reader.cancel()
    expect(count(source.told, 'gone')).toBe(1)
  })

  test('aborted while a pull waits: what it brings goes nowhere', async () => {
    const { promise: brought, resolve: bring } = Promise.withResolvers<Uint8Array | undefined>()
    const told: string[] = []
    const abort = new AbortController()
    const body = tap(
      {
        pull: () => brought,
        gone: () => told.push('gone'),
      },
      abort.signal,
    )
    const reader = body.getReader()
    const read = reader.read()
    abort.abort()
    bring(Uint8Array.of(1))
    await reader.cancel()
    expect((await read).done).toBe(true)
    expect(told).toEqual(['gone'])
  })

  test('a source that breaks is an error to the reader, and nobody is gone', async () => {
    const source = scripted('bytes', 'throw')
    const abort = new AbortController()
    const reader = tap(source, abort.signal).getReader()
    await reader.read()
    const outcome = await reader.read().then(
      () => 'read',
      () => 'error',
    )
    abort.abort()
    expect(outcome).toBe('error')
    expect(source.told).toEqual(['pull', 'pull'])
  })
})

test('nothing is pulled that nobody asked for', async () => {
  const source = scripted('bytes', 'bytes', 'bytes', 'end')
  const reader = tap(source, signal()).getReader()
  await Bun.sleep(0)
  expect(source.told).toEqual([])
  await reader.read()
  await Bun.sleep(0)
  expect(source.told).toEqual(['pull'])
})
