import { decoded } from '../fields.ts'
import type { Call, Protocol, World } from '../protocol.ts'
import { endpointAt } from '../serve.ts'
import { readKey } from './read-call.ts'
import { completions } from './complete.ts'
import { modelNotFound, VendorError, writeError } from './errors.ts'

/** OpenAI's protocol, as most vendors speak it: chat completions and the list of models. */
export const chatProtocol: Protocol = (vendor, root, world) => [
  ...endpointAt('/chat/completions', completions)(vendor, root, world),
  { method: 'GET', path: `${root}/models`, answer: (call) => answerModels(call, () => listModels(vendor, world)) },
  {
    method: 'GET',
    path: `${root}/models/*`,
    answer: (call) => answerModels(call, () => findModel(vendor, world, call.path.slice(`${root}/models/`.length))),
  },
]

function answerModels(call: Call, find: () => unknown): Response {
  try {
    readKey(call.request)
    return Response.json(find())
  } catch (error) {
    if (error instanceof VendorError) return writeError(call.vendor, error, call.path)
    throw error
  }
}

function listModels(vendor: string, world: World): unknown {
  const ids = [...(world.models.get(vendor)?.keys() ?? [])]
  return { object: 'list', data: ids.map((id) => describe(vendor, id)) }
}

function findModel(vendor: string, world: World, encoded: string): unknown {
  const id = decoded(encoded)
  if (!world.models.get(vendor)?.has(id)) throw modelNotFound(id)
  return describe(vendor, id)
}

function describe(vendor: string, id: string): unknown {
  return { id, object: 'model', created: 1_767_225_600, owned_by: vendor }
}
