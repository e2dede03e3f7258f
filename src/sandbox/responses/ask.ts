import { badRequest } from '../chat/errors.ts'
import { type TextAsk, wordsFor } from '../compose-text.ts'
import { contentText, type Fields, fieldsIn, itemsIn, textIn } from '../fields.ts'
import type { SandboxModel } from '../model.ts'
import type { Prompt } from '../prompt.ts'
import { readSteering, withoutSteering } from '../steering.ts'
import { checkFields } from './check-fields.ts'
import { checkInput } from './check-input.ts'
import { checkTools } from './check-tools.ts'
import { feedRequest } from './feed.ts'
import { effortOf, reasoningTokensFor } from './thinking.ts'
import { chooseTools, type Tool } from './tools.ts'

/** A checked request, reduced to what determines the answer. */
export type ResponsesAsk = TextAsk & {
  readonly model: SandboxModel
  /** The request itself, because the answer repeats most of it. */
  readonly body: Fields
  readonly stream: boolean
  /** OpenAI pads deltas with random letters, so that an observer cannot infer words from the length of a delta. */
  readonly isPadded: boolean
  readonly prompt: Prompt
  readonly promptTokens: number
  readonly outputTokensMax: number
  /** Null for a model that does not reason. */
  readonly effort: string | null
  readonly reasoningTokens: number
  readonly includes: ReadonlySet<unknown>
  /** How many alternatives are given for each token; absent unless the request includes logprobs. */
  readonly alternatives: number | undefined
  readonly tools: readonly Tool[]
}

export function readAsk(body: Fields, bodyText: string, model: SandboxModel): ResponsesAsk {
  checkFields(body, model)
  checkTools(body.tools)
  const items = checkInput(body, model)
  const rawUserText = lastUserText(items)
  const steering = readSteering(systemText(body, items), rawUserText)
  const userText = withoutSteering(rawUserText)
  const { prompt, promptTokens } = feedRequest(body, bodyText, items)
  const effort = effortOf(body, model)
  const includes = new Set(itemsIn(body.include))
  return {
    model,
    body,
    stream: body.stream === true,
    isPadded: fieldsIn(body.stream_options).include_obfuscation !== false,
    steering,
    userText,
    prompt,
    promptTokens,
    seed: prompt.hash,
    outputTokensMax: readOutputCap(body, model, promptTokens),
    effort,
    reasoningTokens: reasoningTokensFor(effort),
    includes,
    alternatives: includes.has('message.output_text.logprobs') ? Number(body.top_logprobs ?? 0) : undefined,
    // The protocol has no stop sequences.
    stop: [],
    format: readFormat(body, items),
    wordsMin: wordsFor(fieldsIn(body.text).verbosity),
    tools: chooseTools({ body, items, userText, steered: steering.text('tool') }),
  }
}

function lastUserText(items: readonly Fields[]): string {
  return contentText(items.findLast(({ role }) => role === 'user')?.content)
}

function systemText({ instructions }: Fields, items: readonly Fields[]): string {
  const told = items.filter(({ role }) => role === 'system' || role === 'developer')
  return [textIn(instructions), ...told.map(({ content }) => contentText(content))].join('\n')
}

function readOutputCap(body: Fields, { contextTokens, outputTokensMax }: SandboxModel, promptTokens: number): number {
  const wanted = typeof body.max_output_tokens === 'number' ? body.max_output_tokens : outputTokensMax
  if (promptTokens >= contextTokens) {
    const message = 'Your input exceeds the context window of this model. Please adjust your input and try again.'
    throw badRequest(message, 'input', 'context_length_exceeded')
  }
  return Math.min(wanted, contextTokens - promptTokens)
}

function readFormat({ text, instructions }: Fields, items: readonly Fields[]): ResponsesAsk['format'] {
  const { type, schema } = fieldsIn(fieldsIn(text).format)
  if (type === 'json_schema') return { type: 'schema', schema }
  if (type !== 'json_object') return { type: 'text' }
  const isSaid = [textIn(instructions), ...items.map(({ content }) => contentText(content))].some((said) =>
    /json/i.test(said),
  )
  if (isSaid) return { type: 'object' }
  const message =
    "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'."
  throw badRequest(message, 'input')
}
