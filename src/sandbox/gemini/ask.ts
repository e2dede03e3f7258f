import { formatAskedIn } from '../asked-format.ts'
import { type TextAsk, wordsFor } from '../compose-text.ts'
import { type Fields, fieldsIn, isGiven, itemsIn, shown, textIn } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import { hashText } from '../seeded.ts'
import { readSteering, type Steering, withoutSteering } from '../steering.ts'
import { checkConfig } from './check-config.ts'
import { checkContents, checkSystemInstruction, partsOf } from './check-contents.ts'
import { GoogleError, invalid } from './errors.ts'
import { type CountedPrompt, countPrompt } from './prompt.ts'
import { toJsonSchema } from './schema.ts'
import { generationOf, readThinking, type Thinking } from './thinking.ts'
import { chooseTools, readTools, type Tool } from './tools.ts'

/** A checked request, reduced to what determines the answer. */
export type GeminiAsk = TextAsk & {
  readonly model: SandboxModel
  readonly counted: CountedPrompt
  readonly promptTokens: number
  readonly candidates: number
  readonly outputTokensMax: number
  readonly thinking: Thinking
  /** How many alternatives are given for each token; absent without `responseLogprobs`. */
  readonly alternatives: number | undefined
  readonly tools: readonly Tool[]
  /** Which parts carry a thought signature: all from generation 3 on, before it only function calls after reasoning. */
  readonly signs: 'all' | 'calls' | 'nothing'
}

export function readAsk(body: Fields, bodyText: string, model: SandboxModel, isStreaming: boolean): GeminiAsk {
  const contents = itemsIn(body.contents).map(fieldsIn)
  const config = fieldsIn(body.generationConfig)
  const isThird = generationOf(model) >= 3
  checkContents(contents, isThird)
  checkSystemInstruction(body.systemInstruction)
  const offered = readTools(itemsIn(body.tools).map(fieldsIn), model)
  checkConfig(config, { model, isStreaming, hasTools: offered.length > 0 })
  const thinking = readThinking(fieldsIn(config.thinkingConfig), model)
  if (isGiven(body.cachedContent)) {
    throw new GoogleError({ status: 403, message: 'CachedContent not found (or permission denied)' })
  }
  const counted = countPrompt(body, contents, bodyText)
  if (counted.tokens > model.contextTokens) {
    throw invalid(
      `The input token count (${counted.tokens}) exceeds the maximum number of tokens allowed (${model.contextTokens}).`,
    )
  }
  const { steering, userText } = readTexts(body, contents)
  return {
    model,
    counted,
    promptTokens: counted.tokens,
    steering,
    userText,
    seed: hashText(isGiven(config.seed) ? shown(config.seed) : '', counted.prompt.hash),
    candidates: typeof config.candidateCount === 'number' ? config.candidateCount : 1,
    outputTokensMax: typeof config.maxOutputTokens === 'number' ? config.maxOutputTokens : model.outputTokensMax,
    thinking,
    stop: itemsIn(config.stopSequences).map(textIn),
    alternatives: config.responseLogprobs === true ? Number(config.logprobs ?? 0) : undefined,
    format: readFormat(config) ?? formatAskedIn(textOf(fieldsIn(body.systemInstruction))),
    wordsMin: wordsFor(),
    tools: chooseTools({
      offered,
      config: fieldsIn(fieldsIn(body.toolConfig).functionCallingConfig),
      contents,
      userText,
      steered: steering.text('tool'),
    }),
    signs: isThird ? 'all' : thinking.tokens > 0 ? 'calls' : 'nothing',
  }
}

/** Steering words are read from the last user text and the system instruction. */
export function readTexts(body: Fields, contents: readonly Fields[]): { steering: Steering; userText: string } {
  const last = contents.findLast((content) => content.role !== 'model' && textOf(content) !== '')
  const rawText = textOf(last ?? {})
  return {
    steering: readSteering(textOf(fieldsIn(body.systemInstruction)), rawText),
    userText: withoutSteering(rawText),
  }
}

function textOf(content: Fields): string {
  return partsOf(content)
    .map(({ text }) => textIn(text))
    .filter((text) => text !== '')
    .join('\n')
}

function readFormat(config: Fields): TextAsk['format'] | undefined {
  const { responseMimeType, responseSchema, responseJsonSchema } = config
  if (responseMimeType !== 'application/json' && responseMimeType !== 'text/x.enum') return undefined
  const type = responseMimeType === 'text/x.enum' ? 'enum' : 'schema'
  if (isGiven(responseJsonSchema)) return { type, schema: responseJsonSchema }
  if (isGiven(responseSchema)) return { type, schema: toJsonSchema(fieldsIn(responseSchema)) }
  return { type: 'object' }
}
