import { formatAskedIn } from '../asked-format.ts'
import { type TextAsk, wordsFor } from '../compose-text.ts'
import type { SandboxModel } from '../model.ts'
import { createPrompt, feedFixed, feedMedia, feedText, type Prompt } from '../prompt.ts'
import { hashText } from '../seeded.ts'
import { readSteering, withoutSteering } from '../steering.ts'
import { checkFields } from './check-fields.ts'
import { checkKnown } from './check-known.ts'
import { checkMessages } from './check-messages.ts'
import { badRequest } from './errors.ts'
import { contentText, type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import { capsWordsAlone, reasoningTokensFor } from './reasoning.ts'
import { asksForFunctions, chooseTools, type Tool } from './tools.ts'

/** A checked request, reduced to what determines the answer. */
export type ChatAsk = TextAsk & {
  readonly model: SandboxModel
  readonly stream: boolean
  readonly includeUsage: boolean
  /** OpenAI pads chunks with random letters, so that an observer cannot infer words from the length of a chunk. */
  readonly isPadded: boolean
  readonly prompt: Prompt
  /** Calls under another key do not share a cached prompt. */
  readonly promptCacheKey: string
  readonly promptTokens: number
  readonly choices: number
  readonly outputTokensMax: number
  /** Whether `outputTokensMax` caps the visible words alone, with reasoning tokens on top. */
  readonly capsWordsAlone: boolean
  readonly reasoningTokens: number
  /** How many alternatives are given for each token; absent without `logprobs`. */
  readonly alternatives: number | undefined
  readonly tools: readonly Tool[]
  /** Whether a call is written as `function_call`, because the request offered `functions`. */
  readonly isLegacy: boolean
}

const frameTokens = 3
const mediaTokens = 85

export function readAsk(body: Fields, bodyText: string, model: SandboxModel): ChatAsk {
  const messages = checkMessages(body.messages, model)
  checkFields(body, model)
  checkKnown(body, model)
  const rawUserText = lastUserText(messages)
  const steering = readSteering(systemText(messages), rawUserText)
  const userText = withoutSteering(rawUserText)
  const prompt = createPrompt()
  const media = feedAsk(prompt, body, messages)
  // A number such as 1e20 grows when serialised again, but no prompt may have more tokens than its request has bytes.
  const promptTokens = Math.min(prompt.tokens, Buffer.byteLength(bodyText) + media * mediaTokens)
  const outputTokensMax = readOutputCap(body, model, promptTokens)
  const format = readFormat(body.response_format, messages)
  return {
    model,
    stream: body.stream === true,
    includeUsage: fieldsIn(body.stream_options).include_usage === true,
    isPadded: model.vendor === 'openai' && fieldsIn(body.stream_options).include_obfuscation !== false,
    steering,
    userText,
    prompt,
    promptCacheKey: textIn(body.prompt_cache_key),
    promptTokens,
    seed: hashText(`${typeof body.seed === 'number' ? body.seed : ''}`, prompt.hash),
    choices: typeof body.n === 'number' ? body.n : 1,
    outputTokensMax,
    capsWordsAlone: capsWordsAlone(body, model),
    reasoningTokens: reasoningTokensFor(body, model),
    stop: readStop(body.stop),
    alternatives: body.logprobs === true ? (typeof body.top_logprobs === 'number' ? body.top_logprobs : 0) : undefined,
    format,
    wordsMin: wordsFor(body.verbosity),
    tools: chooseTools({ body, messages, userText, steered: steering.text('tool') }),
    isLegacy: asksForFunctions(body),
  }
}

function lastUserText(messages: readonly Fields[]): string {
  return contentText(messages.findLast((message) => message.role === 'user')?.content)
}

function systemText(messages: readonly Fields[]): string {
  let text = ''
  for (const { role, content } of messages) {
    if (role === 'system' || role === 'developer') text += `${contentText(content)}\n`
  }
  return text
}

/** Counts the prompt in the vendor's caching order: tools, then messages. Returns how many media items it holds. */
function feedAsk(prompt: Prompt, { tools, functions }: Fields, messages: readonly Fields[]): number {
  let media = 0
  for (const offered of [tools, functions]) {
    if (itemsIn(offered).length > 0) feedText(prompt, JSON.stringify(offered))
  }
  for (const message of messages) {
    feedFixed(prompt, textIn(message.role), frameTokens)
    feedText(prompt, textIn(message.name))
    feedText(prompt, contentText(message.content))
    for (const part of itemsIn(message.content)) {
      const { type, ...fields } = fieldsIn(part)
      if (type === 'text' || type === 'refusal') continue
      media += 1
      feedMedia(prompt, mediaSource(fields), mediaTokens)
    }
    for (const call of itemsIn(message.tool_calls)) feedCall(prompt, fieldsIn(call))
    feedCall(prompt, { function: message.function_call })
  }
  return media
}

function feedCall(prompt: Prompt, { function: named, custom }: Fields): void {
  const called: Fields = { ...fieldsIn(named), ...fieldsIn(custom) }
  feedText(prompt, textIn(called.name))
  feedText(prompt, textIn(called.arguments) || textIn(called.input))
}

function mediaSource(fields: Fields): string {
  const media = fieldsIn(fields.image_url ?? fields.input_audio ?? fields.file ?? fields.video_url)
  return textIn(media.url ?? media.data ?? media.file_data ?? media.file_id)
}

function readOutputCap(body: Fields, { contextTokens, outputTokensMax }: SandboxModel, promptTokens: number): number {
  const caps = [body.max_completion_tokens, body.max_tokens].filter((asked) => typeof asked === 'number')
  const wanted = Math.min(outputTokensMax, ...caps)
  if (promptTokens >= contextTokens) {
    const message = `This model's maximum context length is ${contextTokens} tokens. However, your messages resulted in ${promptTokens} tokens. Please reduce the length of the messages.`
    throw badRequest(message, 'messages', 'context_length_exceeded')
  }
  return Math.min(wanted, contextTokens - promptTokens)
}

function readStop(stop: unknown): readonly string[] {
  const items = typeof stop === 'string' ? [stop] : itemsIn(stop).map(textIn)
  return items.filter((item) => item !== '')
}

function readFormat(format: unknown, messages: readonly Fields[]): ChatAsk['format'] {
  if (!isGiven(format)) return { type: 'text' }
  const { type, json_schema: wanted } = fieldsIn(format)
  if (type === 'json_schema') return { type: 'schema', schema: fieldsIn(wanted).schema }
  if (type !== 'json_object') return { type: 'text' }
  if (!messages.some((message) => /json/i.test(contentText(message.content)))) {
    const message =
      "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
    throw badRequest(message, 'messages')
  }
  const told = formatAskedIn(systemText(messages))
  return told.type === 'schema' ? told : { type: 'object' }
}
