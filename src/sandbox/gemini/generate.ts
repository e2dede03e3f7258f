import { eventEncoder, type Frame } from '../event-stream.ts'
import type { Fields } from '../fields.ts'
import type { Answer, Endpoint } from '../serve.ts'
import { type GeminiAsk, readAsk } from './ask.ts'
import { type Composition, compose } from './compose.ts'
import { dialectOn } from './dialect.ts'
import { type GoogleError, jsonType, writeError, writeJson } from './errors.ts'
import { arrayFrames, frames } from './frames.ts'
import { readMessage } from './proto.ts'
import { generateContentRequest } from './shapes.ts'
import { writeResponse } from './write.ts'

/** `array` is a stream without `alt=sse`. */
export type Delivery = 'plain' | 'events' | 'array'

/** generateContent and streamGenerateContent of the models that write. */
export function textContent(model: string, delivery: Delivery): Endpoint<Fields, GeminiAsk, GoogleError> {
  let asArray = delivery === 'array'
  return {
    dialect: {
      ...dialectOn(delivery === 'plain' ? 'generateContent' : 'streamGenerateContent'),
      writeRefusal: (_, refusal) => writeError(refusal, asArray),
    },
    capabilities: ['chat'],
    open: ({ text }) => ({ model, body: readMessage(text, generateContentRequest) }),
    read(body, known, { text }) {
      const ask = readAsk(body, text, known, delivery !== 'plain')
      asArray ||= delivery === 'events' && ask.steering.has('error-array')
      return ask
    },
    make(ask, _, { key, world }) {
      const composition = compose(ask, world.cache.read([key, model].join('\n'), ask.counted.prompt))
      return { units: composition.units, ...makeContent(ask, composition, delivery) }
    },
  }
}

function makeContent(ask: GeminiAsk, composition: Composition, delivery: Delivery): Omit<Answer, 'units'> {
  switch (delivery) {
    case 'plain': {
      const text = writeJson(writeResponse(ask, composition))
      return { headers: headersOf(jsonType), body: { kind: 'whole', text, openAfter: '"text": "' } }
    }
    case 'array': {
      const encoder = new TextEncoder()
      const written = arrayFrames(ask, composition)
      const body = { kind: 'frames', frames: written, encode: ({ text }: Frame) => encoder.encode(text) } as const
      return { headers: headersOf(jsonType), body }
    }
    case 'events': {
      // The vendor's events end in CRLF.
      const encode = eventEncoder(ask.steering, '\r\n')
      return {
        headers: headersOf('text/event-stream'),
        body: { kind: 'frames', frames: frames(ask, composition), encode },
      }
    }
  }
}

function headersOf(contentType: string): Record<string, string> {
  return {
    'content-type': contentType,
    server: 'scaffolding on HTTPServer2',
    'x-content-type-options': 'nosniff',
  }
}
