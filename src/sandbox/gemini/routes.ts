import type { Call, Protocol, World } from '../protocol.ts'
import { countTokens } from './count-tokens.ts'
import { GoogleError, jsonType, modelNotFound, writeError, writeJson } from './errors.ts'
import { generateContent } from './generate.ts'
import { readKey } from './key.ts'
import { getModel, listModels } from './models.ts'

/** Google's own protocol: the method stands behind a colon at the end of the model's name. */
export const geminiProtocol: Protocol = (vendor, root, world) => {
  // Some clients encode the colon.
  const tailOf = ({ path }: Call): string => path.slice(`${root}/models/`.length).replaceAll(/%3a/gi, ':')
  return [
    { method: 'GET', path: `${root}/models`, answer: (call) => answerModels(call, () => listModels(call, world)) },
    {
      method: 'GET',
      path: `${root}/models/*`,
      answer: (call) => answerModels(call, () => getModel(vendor, world, tailOf(call))),
    },
    { method: 'POST', path: `${root}/models/*`, answer: (call) => answerMethod(call, world, tailOf(call)) },
  ]
}

function answerMethod(call: Call, world: World, tail: string): Response | Promise<Response> {
  const colon = tail.lastIndexOf(':')
  const model = tail.slice(0, colon)
  const method = tail.slice(colon + 1)
  switch (method) {
    case 'generateContent':
      return generateContent(call, world, model, 'plain')
    case 'streamGenerateContent': {
      const isEvents = new URL(call.request.url).searchParams.get('alt') === 'sse'
      return generateContent(call, world, model, isEvents ? 'events' : 'array')
    }
    case 'countTokens':
      return countTokens(call, world, model)
    default:
      return writeError(modelNotFound(model, method), false)
  }
}

function answerModels(call: Call, find: () => unknown): Response {
  try {
    readKey(call.request)
    return new Response(writeJson(find()), { headers: { 'content-type': jsonType } })
  } catch (error) {
    if (error instanceof GoogleError) return writeError(error, false)
    throw error
  }
}
