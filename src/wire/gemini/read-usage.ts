import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { countIn, objectsIn } from '../loose.ts'

/**
 * Splits the vendor's counts. The prompt's count includes cached tokens but not those of hosted tools, and the
 * candidates' count does not include thinking. Audio has its own price, except that cached audio is priced as any
 * cached input. An input that was not counted is left out, because no prompt is empty. `asked` is what an answer
 * consists of whose tokens the vendor does not tell apart.
 */
export function readUsage(usage: Json | undefined, asked: 'TEXT' | 'IMAGE' | 'AUDIO' = 'TEXT'): Usage | undefined {
  if (!isObject(usage)) return undefined
  const { promptTokenCount, candidatesTokenCount, totalTokenCount } = usage
  if ([promptTokenCount, candidatesTokenCount, totalTokenCount].every((told) => typeof told !== 'number')) {
    return undefined
  }
  const hasInput = typeof promptTokenCount === 'number'
  const prompt = countIn(promptTokenCount) + countIn(usage['toolUsePromptTokenCount'])
  const cachedInput = Math.min(countIn(usage['cachedContentTokenCount']), prompt)
  const audioInput = Math.min(freshInput(usage, 'AUDIO'), prompt - cachedInput)

  const reasoning = countIn(usage['thoughtsTokenCount'])
  const beside = hasInput ? Math.max(0, countIn(totalTokenCount) - prompt - reasoning) : 0
  const said = typeof candidatesTokenCount === 'number' ? countIn(candidatesTokenCount) : beside
  // The flow estimates audio and images only where nothing was counted.
  if (asked !== 'TEXT' && said === 0 && !isOutputCounted(usage)) return undefined
  const told = objectsIn(usage['candidatesTokensDetails'])
  // Details that name what was asked for may leave out the text beside it. Those that do not name it leave out itself.
  const named = ofKind(told, 'TEXT') + ofKind(told, 'IMAGE') + ofKind(told, 'AUDIO')
  const rest = { modality: asked, tokenCount: said - named }
  const details = ofKind(told, asked) > 0 ? told : [...told, rest]
  const imageOutput = Math.min(ofKind(details, 'IMAGE'), said)
  const audioOutput = Math.min(ofKind(details, 'AUDIO'), said - imageOutput)
  return {
    ...(hasInput && { input: prompt - cachedInput - audioInput }),
    cachedInput,
    audioInput,
    output: said - imageOutput - audioOutput + reasoning,
    imageOutput,
    audioOutput,
    reasoning,
  }
}

/** The vendor leaves out a count that is 0, but also some others. Only a total of 0 says that nothing was used. */
export function isOutputCounted({ candidatesTokenCount, totalTokenCount }: JsonObject): boolean {
  return typeof candidatesTokenCount === 'number' || totalTokenCount === 0
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
