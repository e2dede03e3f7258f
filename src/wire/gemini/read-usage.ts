import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { countIn, objectsIn } from '../loose.ts'

/**
 * Splits the vendor's counts. The prompt's count includes cached tokens but not those of hosted tools, and the
 * candidates' count does not include thinking. Audio has its own price, except that cached audio is priced as any
 * cached input.
 */
export function readUsage(usage: Json | undefined): Usage | undefined {
  if (!isObject(usage)) return undefined
  const { promptTokenCount, candidatesTokenCount, totalTokenCount } = usage
  if ([promptTokenCount, candidatesTokenCount, totalTokenCount].every((told) => typeof told !== 'number')) {
    return undefined
  }
  const prompt = countIn(promptTokenCount) + countIn(usage['toolUsePromptTokenCount'])
  const cachedInput = Math.min(countIn(usage['cachedContentTokenCount']), prompt)
  const audioInput = Math.min(freshInput(usage, 'AUDIO'), prompt - cachedInput)

  const reasoning = countIn(usage['thoughtsTokenCount'])
  const said = countIn(candidatesTokenCount)
  const imageOutput = Math.min(ofKind(usage['candidatesTokensDetails'], 'IMAGE'), said)
  const audioOutput = Math.min(ofKind(usage['candidatesTokensDetails'], 'AUDIO'), said - imageOutput)
  return {
    input: prompt - cachedInput - audioInput,
    cachedInput,
    audioInput,
    output: said - imageOutput - audioOutput + reasoning,
    imageOutput,
    audioOutput,
    reasoning,
  }
}

/** The prompt's tokens of one modality, without those that were cached. */
export function freshInput(usage: JsonObject, modality: string): number {
  const all = ofKind(usage['promptTokensDetails'], modality) + ofKind(usage['toolUsePromptTokensDetails'], modality)
  return Math.max(0, all - ofKind(usage['cacheTokensDetails'], modality))
}

/** The tokens of one modality in a `…TokensDetails`. */
function ofKind(details: Json | undefined, modality: string): number {
  const found = objectsIn(details).filter((detail) => detail['modality'] === modality)
  return found.reduce((sum, { tokenCount }) => sum + countIn(tokenCount), 0)
}
