import { eventEncoder } from '../event-stream.ts'
import type { Fields } from '../fields.ts'
import { commonDialect, eventHeadersFor, headersFor } from '../media/common.ts'
import type { Endpoint } from '../serve.ts'
import { type ChatAsk, readAsk } from './ask.ts'
import { compose } from './compose.ts'
import { VendorError } from './errors.ts'
import { frames } from './frames.ts'
import { openChat } from './read-call.ts'
import { writeCompletion } from './write.ts'

/** `POST /chat/completions`. */
export const completions: Endpoint<Fields, ChatAsk, VendorError> = {
  dialect: { ...commonDialect, wrongModel: notServed },
  capabilities: ['chat'],
  open: openChat,
  read: (body, model, { text }) => readAsk(body, text, model),
  make(ask, _, { key, world }) {
    const owner = [key, ask.model.model, ask.promptCacheKey].join('\n')
    const composition = compose(ask, world.cache.read(owner, ask.prompt))
    const { id, units } = composition
    const requestId = `req_${id.slice('chatcmpl-'.length)}`
    if (ask.stream) {
      const body = { frames: frames(ask, composition), encode: eventEncoder(ask.steering) }
      return { units, headers: eventHeadersFor(requestId), body: { kind: 'frames', ...body } }
    }
    const text = writeCompletion(ask, composition)
    return { units, headers: headersFor(requestId), body: { kind: 'whole', text, openAfter: '"content":"' } }
  },
}

function notServed(): VendorError {
  const message = 'This is not a chat model and thus not supported in the v1/chat/completions endpoint.'
  return new VendorError({ status: 404, message, param: 'model' })
}
