import { describe, expect, test } from 'bun:test'
import { abortSignalOf, LeaveSignal } from './client-signal.ts'

describe('the signal of a client', () => {
  test('each listener hears once that it left', () => {
    const signal = new LeaveSignal()
    const heard: string[] = []
    signal.addEventListener('abort', () => heard.push(`one: ${signal.aborted}`))
    signal.addEventListener('abort', () => heard.push('two'))
    expect(signal.aborted).toBe(false)
    signal.abort()
    signal.abort()
    signal.addEventListener('abort', () => heard.push('late'))
    signal.abort()
    expect(heard).toEqual(['one: true', 'two'])
  })

  test('a listener that was removed hears nothing', () => {
    const signal = new LeaveSignal()
    const heard: string[] = []
    const one = () => heard.push('one')
    const two = () => heard.push('two')
    signal.removeEventListener('abort', one)
    for (const listener of [one, two]) signal.addEventListener('abort', listener)
    signal.removeEventListener('abort', one)
    signal.abort()
    signal.removeEventListener('abort', two)
    expect(heard).toEqual(['two'])
  })

  test('listeners may come and go while it aborts', () => {
    const signal = new LeaveSignal()
    const heard: string[] = []
    const last = () => heard.push('last')
    signal.addEventListener('abort', () => {
      heard.push('first')
      signal.removeEventListener('abort', last)
      signal.addEventListener('abort', () => heard.push('added'))
      signal.abort()
    })
    signal.addEventListener('abort', last)
    signal.abort()
    expect(heard).toEqual(['first', 'last'])
  })

  test('a mistake in one listener does not keep the others from hearing', () => {
    const signal = new LeaveSignal()
    const heard: string[] = []
    for (const name of ['one', 'two', 'three']) {
      signal.addEventListener('abort', () => {
        heard.push(name)
        if (name !== 'three') throw new Error(name)
      })
    }
    expect(() => signal.abort()).toThrow('one')
    expect(heard).toEqual(['one', 'two', 'three'])
  })
})

describe('the same as a signal of the web', () => {
  test('it aborts with the client', () => {
    const signal = new LeaveSignal()
    const ofTheWeb = abortSignalOf(signal)
    expect(ofTheWeb.aborted).toBe(false)
    signal.abort()
    expect(ofTheWeb.aborted).toBe(true)
    expect(ofTheWeb.reason).toMatchObject({ name: 'AbortError' })
  })

  test('it is aborted where the client has left before', () => {
    const signal = new LeaveSignal()
    signal.abort()
    expect(abortSignalOf(signal).aborted).toBe(true)
  })

  test('one of the web stays what it is', () => {
    const { signal } = new AbortController()
    expect(abortSignalOf(signal)).toBe(signal)
  })
})
