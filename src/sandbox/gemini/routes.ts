import { mediaContent } from '../gemini-media/content.ts'
import { embedding } from '../gemini-media/embed.ts'
import { imagen } from '../gemini-media/predict.ts'
import { serve } from '../serve.ts'
import { isSoldFor } from '../model.ts'
import type { Call, Protocol, World } from '../protocol.ts'
import { countTokens } from './count-tokens.ts'
import { GoogleError, jsonType, modelNotFound, writeError, writeJson } from './errors.ts'
import { type Delivery, textContent } from './generate.ts'
import { readKey } from './key.ts'
import { getModel, listModels } from './models.ts'
import { getOperation, predictLongRunning, readOperation } from '../video-veo/routes.ts'

/** Google's own protocol, in which the method follows the model's name after a colon. */
export const geminiProtocol: Protocol = (vendor, root, world) => {
  // Some clients encode the colon.
  const tailOf = ({ path }: Call): string => path.slice(`${root}/models/`.length).replaceAll(/%3a/gi, ':')
  return [
    { method: 'GET', path: `${root}/models`, answer: (call) => answerModels(call, () => listModels(call, world)) },
    {
      method: 'GET',
      path: `${root}/models/*`,
      answer(call) {
        const operation = readOperation(tailOf(call))
        if (operation) return getOperation(call, world, operation)
        return answerModels(call, () => getModel(vendor, world, tailOf(call)))
      },
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
      return answerContent(call, world, model, 'plain')
    case 'streamGenerateContent': {
      const isEvents = new URL(call.request.url).searchParams.get('alt') === 'sse'
      return answerContent(call, world, model, isEvents ? 'events' : 'array')
    }
    case 'embedContent':
    case 'batchEmbedContents':
      return serve(call, world, embedding(model, method), model)
    case 'predict':
      return serve(call, world, imagen(model), model)
    case 'countTokens':
      return countTokens(call, world, model)
    case 'predictLongRunning':
      return predictLongRunning(call, world, model)
    default:
      return writeError(modelNotFound(model, method), false)
  }
}

/** The model decides whether text or media is generated. Imagen models use `predict` instead. */
function answerContent(call: Call, world: World, model: string, delivery: Delivery): Promise<Response> {
  const known = world.models.get(call.vendor)?.get(model)
  const isMedia = known && isSoldFor(known, 'images', 'speech') && !model.startsWith('imagen')
  return isMedia
    ? serve(call, world, mediaContent(model, delivery), model)
    : serve(call, world, textContent(model, delivery), model)
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
