import type { ChatAsk } from '../../capabilities/chat.ts'
import { openReader, readAnswer } from '../../wire/gemini/read-answer.ts'
import { writeAsk } from '../../wire/gemini/write-ask.ts'
import { isReadByVendor } from '../../wire/gemini/write-media.ts'
import type { Vendor } from '../vendor.ts'
import { callTo } from './call.ts'
import { embeddings } from './embeddings.ts'
import { explain } from './explain.ts'
import { images } from './images.ts'
import { speech } from './speech.ts'
import { video } from './video.ts'

/** Google's Gemini API. No client speaks its protocol to the gateway, so every chat is translated. */
export const google: Vendor = {
  id: 'google',
  baseUrl: 'https://generativelanguage.googleapis.com',
  callRoots: ['/v1beta'],
  environment: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'],
  hangup: 'stop',
  local: false,
  explain,
  embeddings,
  speech,
  images,
  video,
  chat: {
    protocol: 'gemini',
    // Some models take more, but never in a stream.
    choicesMax: 1,
    translate(ask, conversation, context) {
      return callTo(methodOf(ask), writeAsk(conversation, { ...context, protocol: ask.protocol }), context)
    },
    readsLink: isReadByVendor,
    readAnswer,
    openReader,
  },
}

/** Without `alt=sse` a stream would be one JSON array. */
function methodOf({ stream }: ChatAsk): string {
  return stream ? 'streamGenerateContent?alt=sse' : 'generateContent'
}
