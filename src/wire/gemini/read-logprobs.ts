import type { Json, JsonObject } from '../../base/json.ts'
import { objectIn, objectsIn, textIn } from '../loose.ts'

const encoder = new TextEncoder()

/** `logprobsResult` in the common protocol's form, since only that protocol asks for it. */
export function readLogprobs(result: Json | undefined): JsonObject | undefined {
  const { chosenCandidates, topCandidates } = objectIn(result)
  const tops = objectsIn(topCandidates)
  const content = objectsIn(chosenCandidates).map((token, at) => ({
    ...writeToken(token),
    top_logprobs: objectsIn(tops[at]?.['candidates']).map(writeToken),
  }))
  return content.length === 0 ? undefined : { content, refusal: null }
}

/** Joins the logprobs of several pieces of a text. */
export function joinLogprobs(pieces: readonly Json[]): JsonObject | undefined {
  const content = pieces.flatMap((piece) => objectsIn(objectIn(piece)['content']))
  return content.length === 0 ? undefined : { content, refusal: null }
}

function writeToken({ token, logProbability }: JsonObject): JsonObject {
  return {
    token: textIn(token),
    logprob: typeof logProbability === 'number' ? logProbability : 0,
    bytes: [...encoder.encode(textIn(token))],
  }
}
