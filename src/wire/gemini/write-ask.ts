import { badRequest } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import type { Protocol } from '../../capabilities/chat.ts'
import {
  isCallForced,
  type Conversation,
  type ReplyFormat,
  type Tool,
  type ToolChoice,
} from '../../capabilities/conversation.ts'
import { noHostedSearch } from '../chat-rules.ts'
import { formatInstruction } from '../format-instruction.ts'
import { invalid } from '../issues.ts'
import { type Family, familyOf } from './family.ts'
import { writeName } from './function-name.ts'
import { writeContents, writeSystem } from './write-contents.ts'
import { isEmptySchema, writeSchema } from './write-schema.ts'
import { writeThinking } from './write-thinking.ts'

export type AskTarget = {
  readonly upstreamModel: string
  /** Lowest first; empty where the model's efforts are unknown. */
  readonly efforts: readonly string[]
  readonly outputTokensMax: number
  /** The client's protocol: an error names the field as the client wrote it. */
  readonly protocol: Protocol
}

/** The body of generateContent and streamGenerateContent. docs/translation.md lists what has to be left out. */
export function writeAsk(conversation: Conversation, target: AskTarget): JsonObject {
  // The vendor takes no limit on its searches, so a hold could not be sure to cover them.
  if (conversation.hostedTools.length > 0) throw noHostedSearch(target.protocol)
  const family = familyOf(target.upstreamModel)
  const system = writeSystem(conversation.system, conversation.turns)
  const contents = writeContents(conversation.turns, family)
  const isSaid = contents.length > 0
  if (!isSaid && system.length === 0) throw badRequest('There is nothing to answer in the messages.', 'messages')
  const { tools, toolChoice, format } = conversation
  // The second generation refuses a reply format beside functions; where a call is forced, no text needs a format.
  const takesForm = family.isThirdGeneration || tools.length === 0
  if (format !== undefined && !takesForm && !isCallForced(toolChoice)) system.push({ text: formatInstruction(format) })
  const config = writeConfig(conversation, target, family, takesForm ? format : undefined)
  return {
    ...(isSaid && system.length > 0 && { systemInstruction: { parts: system } }),
    // Contents must not be empty, so instructions alone are sent as the user's message.
    contents: isSaid ? contents : [{ role: 'user', parts: system }],
    ...(tools.length > 0 && { tools: [{ functionDeclarations: tools.map(writeTool) }], ...writeChoice(toolChoice) }),
    ...(Object.keys(config).length > 0 && { generationConfig: config }),
  }
}

function writeTool({ name, description, schema }: Tool): JsonObject {
  const parameters = writeSchema(schema)
  return {
    name: writeName(name),
    ...(description !== undefined && { description }),
    ...(!isEmptySchema(parameters) && { parametersJsonSchema: parameters }),
  }
}

function writeChoice(choice: ToolChoice | undefined): JsonObject {
  if (choice === undefined) return {}
  return { toolConfig: { functionCallingConfig: typeof choice === 'string' ? { mode: modes[choice] } : only(choice) } }
}

const modes = { auto: 'AUTO', none: 'NONE', required: 'ANY' } as const satisfies Record<ToolChoice & string, string>

function only({ name }: { name: string }): JsonObject {
  return { mode: 'ANY', allowedFunctionNames: [writeName(name)] }
}

function writeConfig(
  conversation: Conversation,
  target: AskTarget,
  { takesPenalties }: Family,
  format: ReplyFormat | undefined,
): JsonObject {
  const { temperature, topP, topK, outputTokensMax, presencePenalty, frequencyPenalty, seed, logprobs } = conversation
  const stop = writeStop(conversation.stop, target.protocol)
  const thinkingConfig = writeThinking(conversation, target)
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    // Elsewhere 0 switches the limit off; the vendor refuses it.
    ...(topK !== undefined && topK > 0 && { topK }),
    // The vendor refuses a limit above the model's own.
    ...(outputTokensMax !== undefined && { maxOutputTokens: Math.min(outputTokensMax, target.outputTokensMax) }),
    ...(stop.length > 0 && { stopSequences: stop }),
    // Seeds have 64 bits elsewhere and 32 here. A longer one is cut to its low bits, the same ones each time.
    ...(seed !== undefined && Number.isInteger(seed) && { seed: Number(BigInt.asIntN(32, BigInt(seed))) }),
    ...(takesPenalties && presencePenalty !== undefined && { presencePenalty }),
    ...(takesPenalties && frequencyPenalty !== undefined && { frequencyPenalty }),
    ...(logprobs !== undefined && { responseLogprobs: true, ...(logprobs > 0 && { logprobs }) }),
    ...writeFormat(format),
    ...(thinkingConfig !== undefined && { thinkingConfig }),
  }
}

function writeFormat(format: ReplyFormat | undefined): JsonObject {
  if (format === undefined) return {}
  const responseMimeType = 'application/json'
  if (format.kind === 'json') return { responseMimeType }
  const responseJsonSchema = writeSchema(format.schema)
  return { responseMimeType, ...(Object.keys(responseJsonSchema).length > 0 && { responseJsonSchema }) }
}

// The vendor's own limit.
const stopSequencesMax = 5

function writeStop(sequences: readonly string[], protocol: Protocol): string[] {
  const given = sequences.filter((sequence) => sequence !== '')
  if (given.length <= stopSequencesMax) return given
  const field = protocol === 'anthropic' ? 'stop_sequences' : 'stop'
  throw invalid(field, `this model takes at most ${stopSequencesMax} stop sequences`)
}
