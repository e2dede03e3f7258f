import type { Protocol } from '../protocol.ts'
import { endpointAt } from '../serve.ts'
import { countTokens, messages } from './answer.ts'
import { listModels, showModel } from './models.ts'

/** Anthropic's protocol: messages, token counting, and the list of models. */
export const messagesProtocol: Protocol = (vendor, root, world) => [
  ...endpointAt('/messages', messages)(vendor, root, world),
  { method: 'POST', path: `${root}/messages/count_tokens`, answer: (call) => countTokens(call, world) },
  { method: 'GET', path: `${root}/models`, answer: (call) => listModels(call, world) },
  {
    method: 'GET',
    path: `${root}/models/*`,
    answer: (call) => showModel(call, world, call.path.slice(`${root}/models/`.length)),
  },
  // The vendor's command-line tool warms up its connection with this request, without a key.
  { method: 'HEAD', path: `/${vendor}/api/hello`, answer: () => new Response(null, { status: 200 }) },
]
