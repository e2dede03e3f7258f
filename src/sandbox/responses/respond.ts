import { noUnits, type Units } from '../bill.ts'
import { VendorError } from '../chat/errors.ts'
import { openChat } from '../chat/read-call.ts'
import { namedEventEncoder } from '../event-stream.ts'
import { type Fields, textIn } from '../fields.ts'
import { commonDialect, eventHeadersFor, headersFor } from '../media/common.ts'
import type { Answer, Endpoint } from '../serve.ts'
import { readAsk, type ResponsesAsk } from './ask.ts'
import { compose, type Composition } from './compose.ts'
import { frames, type Progress } from './frames.ts'
import { writeItem, writeResponse } from './write.ts'

/** `POST /responses`. */
export const responses: Endpoint<Fields, ResponsesAsk, VendorError> = {
  dialect: { ...commonDialect, wrongModel: notServed },
  capabilities: ['chat'],
  open: openChat,
  read: (body, model, { text }) => readAsk(body, text, model),
  make(ask, _, { key, world }) {
    const owner = [key, ask.model.model, textIn(ask.body.prompt_cache_key)].join('\n')
    const composition = compose(ask, world.cache.read(owner, ask.prompt))
    return ask.stream ? makeStream(ask, composition) : makeWhole(ask, composition)
  },
}

function notServed(model: string): VendorError {
  const message = `The requested model '${model}' cannot be used with the Responses API.`
  return new VendorError({ status: 400, message, param: 'model', code: 'unsupported_model' })
}

const requestIdOf = ({ id }: Composition): string => `req_${id.slice('resp_'.length)}`

function makeStream(ask: ResponsesAsk, composition: Composition): Answer {
  const progress: Progress = { hasSearched: false }
  return {
    units: composition.units,
    headers: eventHeadersFor(requestIdOf(composition)),
    body: {
      kind: 'frames',
      frames: frames(ask, composition, progress),
      encode: namedEventEncoder(ask.steering),
      charged: (sent) => withoutSearches(sent, progress),
    },
  }
}

/** A stream that ends before the web search does not pay for it. */
function withoutSearches(units: Units, { hasSearched }: Progress): Units {
  if (units === noUnits || hasSearched) return units
  const { webSearches: _, ...rest } = units
  return rest
}

function makeWhole(ask: ResponsesAsk, composition: Composition): Answer {
  const isFailed = ask.steering.text('finish') === 'failed'
  const status = isFailed ? 'failed' : composition.cutBy === undefined ? 'completed' : 'incomplete'
  const output = isFailed ? [] : composition.items.map((item) => writeItem(ask, item))
  const text = JSON.stringify(writeResponse(ask, composition, { status, output }))
  return {
    units: isFailed ? noUnits : composition.units,
    headers: headersFor(requestIdOf(composition)),
    body: { kind: 'whole', text, openAfter: '"text":"' },
  }
}
