import { describe, expect, test } from 'bun:test'
import { wholeOf, type Bytes } from '../spliced.ts'
import { pushed, streamOf, type PushedBody, type Sink } from './pushed-body.ts'

/** A body that is written by the test, and what it was told. */
function written() {
  const told: string[] = []
  let sink: Sink | undefined
  const body: PushedBody = {
    begin: (into) => (sink = into),
    drained: () => told.push('drained'),
    left: () => told.push('left'),
  }
  const into = () => {
    if (sink === undefined) throw new Error('it has not begun')
    return sink
  }
  return { body, told, into }
}

const bytes = (text: string) => Buffer.from(text)

describe('a pushed body as a stream', () => {
  test('it is read to its end', async () => {
    const { body, told, into } = written()
    const text = new Response(streamOf(body)).text()
    into().write(bytes('one'))
    into().write(bytes('two'))
    into().end()
    expect(await text).toBe('onetwo')
    expect(told).toEqual([])
  })

  test('one that is written whole as it begins is read', async () => {
    const body: PushedBody = {
      begin(sink) {
        sink.write(bytes('at once'))
        sink.end()
      },
      drained() {},
      left() {},
    }
    expect(await new Response(streamOf(body)).text()).toBe('at once')
  })

  test('it is told when the reader is behind, and when it has room again', async () => {
    const { body, told, into } = written()
    const reader = streamOf(body).getReader()
    expect(into().write(Buffer.alloc(60_000))).toBe(true)
    expect(into().write(Buffer.alloc(60_000))).toBe(false)
    expect(told).toEqual([])
    await reader.read()
    await reader.read()
    expect(told).toEqual(['drained'])
    expect(into().write(bytes('more'))).toBe(true)
    await reader.cancel()
  })

  test('one that breaks off tells its reader why', async () => {
    const { body, into } = written()
    const text = new Response(streamOf(body)).text()
    into().write(bytes('half'))
    into().cut(new Error('it broke'))
    expect(text).rejects.toThrow('it broke')
  })

  test('it is told once that its reader left, and writes into nothing after that', async () => {
    const { body, told, into } = written()
    const stream = streamOf(body)
    await stream.cancel()
    expect(told).toEqual(['left'])
    expect(into().write(bytes('late'))).toBe(false)
    into().end()
    into().cut(new Error('late'))
    expect(told).toEqual(['left'])
  })
})

/** A sink that notes what it is given, and has room until it is told otherwise. */
function noting() {
  const noted: string[] = []
  const sink = {
    noted,
    hasRoom: true,
    write(piece: Bytes) {
      noted.push(Buffer.from(wholeOf(piece)).toString())
      return this.hasRoom
    },
    end: () => void noted.push('<end>'),
    cut: (why: unknown) => void noted.push(`<cut: ${String(why)}>`),
  }
  return sink
}

const settled = () => Bun.sleep(5)

/** A stream that gives these, one for each pull. */
const streamed = (texts: (string | Error)[]) =>
  new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        const next = texts.shift()
        if (next === undefined) controller.close()
        else if (next instanceof Error) controller.error(next)
        else controller.enqueue(bytes(next))
      },
    },
    { highWaterMark: 0 },
  )

describe('a stream as a pushed body', () => {
  test('it is written to its end', async () => {
    const sink = noting()
    pushed(streamed(['one', 'two'])).begin(sink)
    await settled()
    expect(sink.noted).toEqual(['one', 'two', '<end>'])
  })

  test('a stream that fails is cut', async () => {
    const sink = noting()
    pushed(streamed(['one', new Error('no')])).begin(sink)
    await settled()
    expect(sink.noted).toEqual(['one', '<cut: Error: no>'])
  })

  test('nothing more is read while the sink has no room', async () => {
    const sink = noting()
    sink.hasRoom = false
    const left = ['one', 'two', 'three']
    const body = pushed(streamed(left))
    body.drained() // before it has begun, which means nothing
    body.begin(sink)
    await settled()
    expect([sink.noted, left]).toEqual([['one'], ['two', 'three']])
    body.drained()
    await settled()
    expect([sink.noted, left]).toEqual([['one', 'two'], ['three']])
    sink.hasRoom = true
    body.drained()
    await settled()
    expect(sink.noted).toEqual(['one', 'two', 'three', '<end>'])
  })

  test.each(['before it begins', 'while it is read', 'while the sink has no room', 'after its end'])(
    'its stream is cancelled when the reader leaves %s',
    async (when) => {
      let cancelled = 0
      const stream = new ReadableStream<Uint8Array>({
        start(controller) {
          if (when === 'while the sink has no room') controller.enqueue(bytes('one'))
          if (when === 'after its end') controller.close()
        },
        cancel: () => void cancelled++,
      })
      const sink = noting()
      sink.hasRoom = false
      const body = pushed(stream)
      if (when !== 'before it begins') body.begin(sink)
      await settled()
      body.left()
      body.left()
      await settled()
      expect(cancelled).toBe(when === 'after its end' ? 0 : 1)
    },
  )
})
