import { formatAskedIn } from '../asked-format.ts'
import { type TextAsk, wordsFor } from '../compose-text.ts'
import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import type { Mark } from '../marked-cache.ts'
import type { SandboxModel } from '../model.ts'
import { hashText } from '../seeded.ts'
import { readSteering, withoutSteering } from '../steering.ts'
import { checkAnswerFields, checkFormat, checkKnownFields, checkOutputConfig, formatOf } from './check-fields.ts'
import {
  checkAsides,
  checkMessages,
  checkPrefill,
  checkSystem,
  checkThoughts,
  type Message,
  textOf,
} from './check-messages.ts'
import { checkTools } from './check-tools.ts'
import { invalid } from './errors.ts'
import { feedRequest } from './feed.ts'
import type { Head } from './head.ts'
import { checkThinking, thinkingTokensFor } from './thinking.ts'
import { chooseTools, type Tool } from './tools.ts'

/** A checked request, reduced to what determines the answer. */
export type MessagesAsk = TextAsk & {
  readonly model: SandboxModel
  readonly stream: boolean
  readonly promptTokens: number
  readonly marks: readonly Mark[]
  readonly outputTokensMax: number
  /** The stop reason for an answer that reaches `outputTokensMax`. */
  readonly fullStop: 'max_tokens' | 'model_context_window_exceeded'
  readonly thinkingTokens: number
  readonly showsThinking: boolean
  /** Whether the turn stops half-way, for the client to send back and have continued. */
  readonly pauses: boolean
  readonly tools: readonly Tool[]
  /** The documents that the answer must cite. */
  readonly cited: readonly Fields[]
}

export type Purpose = 'answer' | 'count'

/** A request as it came: its body, parsed and as text, and its headers. */
type Sent = { readonly body: Fields; readonly text: string; readonly head: Head }

export function readAsk({ body, text, head }: Sent, model: SandboxModel, purpose: Purpose): MessagesAsk {
  const { system, messages } = checkAsk(body, model, head, purpose)
  const { prompt, promptTokens, marks } = feedRequest(body, text, system, messages)
  const room = model.contextTokens - promptTokens
  if (room <= 0) throw invalid('', `prompt is too long: ${promptTokens} tokens > ${model.contextTokens} maximum`)
  const rawUserText = lastUserText(messages)
  const asides = messages.filter(({ role }) => role === 'system').map(({ blocks }) => textOf(blocks))
  const steering = readSteering(textOf(system), ...asides, rawUserText)
  const userText = withoutSteering(rawUserText)
  // Instructions that have no message beside them arrive as the user's.
  const instructions = textOf(system) || rawUserText
  const answersResult = isResult(messages)
  const maxTokens = typeof body.max_tokens === 'number' ? body.max_tokens : 0
  const { format } = formatOf(body)
  return {
    model,
    stream: body.stream === true,
    steering,
    userText,
    seed: hashText('', prompt.hash),
    promptTokens,
    marks,
    outputTokensMax: Math.min(maxTokens, room),
    fullStop: maxTokens <= room ? 'max_tokens' : 'model_context_window_exceeded',
    thinkingTokens: thinkingTokensFor(body, answersResult),
    showsThinking: fieldsIn(body.thinking).display !== 'omitted',
    stop: itemsIn(body.stop_sequences).map(textIn),
    format: isGiven(format) ? { type: 'schema', schema: fieldsIn(format).schema } : formatAskedIn(instructions),
    wordsMin: wordsFor(),
    // A paused turn that is sent back ends with an assistant message, and is then continued.
    pauses: steering.has('pause') && messages.at(-1)?.role !== 'assistant',
    tools: chooseTools({
      body,
      instructions,
      answersResult,
      userText,
      steered: steering.text('tool'),
    }),
    cited: messages.flatMap(({ blocks }) => blocks.filter(isCited)),
  }
}

/** Throws for what the vendor refuses. */
function checkAsk(body: Fields, model: SandboxModel, head: Head, purpose: Purpose) {
  checkKnownFields(body, head, purpose)
  const messages = checkMessages(body.messages, head)
  checkAsides(messages, model.asides !== false)
  const system = checkSystem(body.system)
  if (purpose === 'answer') checkAnswerFields(body, model, head)
  checkThinking(body, model, head)
  checkTools(body, model)
  checkOutputConfig(body.output_config, model)
  checkFormat(body)
  checkThoughts(messages, body.thinking)
  checkPrefill(messages, model.prefill !== false)
  return { system, messages }
}

function lastUserText(messages: readonly Message[]): string {
  const spoken = messages.findLast(({ role, blocks }) => role === 'user' && textOf(blocks) !== '')
  return spoken ? textOf(spoken.blocks) : ''
}

function isResult(messages: readonly Message[]): boolean {
  const last = messages.findLast(({ role }) => role !== 'system')
  return last?.blocks.some(({ type }) => type === 'tool_result') ?? false
}

function isCited({ type, citations }: Fields): boolean {
  return type === 'document' && fieldsIn(citations).enabled === true
}
