import type { ContentBlock } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { badRequest } from '../../base/errors.ts'
import type { ToolContext } from '../tool-context.ts'
import { costField, costOf, CutShort, modelField, spending, tool, type Shown } from '../tool.ts'
import { readChatStream, type ChatReply } from './chat-stream.ts'
import { wordsIn, type Worded } from './chat-words.ts'

const path = 'POST /v1/chat/completions'

const message = z.looseObject({
  role: z.enum(['system', 'developer', 'user', 'assistant', 'tool']),
  content: z
    .union([z.string(), z.array(z.looseObject({ type: z.string() }))])
    .nullish()
    .meta({ description: 'Text, or blocks such as {type: "text", text} and {type: "image_url", image_url: {url}}.' }),
})

const input = z.looseObject({
  model: modelField('chat', 'gpt-4o-mini'),
  prompt: z
    .string()
    .min(1)
    .optional()
    .meta({
      description: 'The question. Follows `messages` if both are given.',
      examples: ['Name three rivers.'],
    }),
  system: z.string().optional().meta({ description: 'Instructions for the model.' }),
  messages: z.array(message).optional().meta({ description: 'The conversation so far, oldest first.' }),
  max_tokens: z
    .int()
    .min(1)
    .optional()
    .meta({ description: 'The maximum number of output tokens, including reasoning.' }),
  temperature: z.number().min(0).max(2).optional(),
  reasoning_effort: z.string().optional().meta({ description: 'On reasoning models: low, medium, high and others.' }),
  response_format: z
    .looseObject({ type: z.string() })
    .optional()
    .meta({ description: 'For JSON: {type: "json_object"}, or {type: "json_schema", json_schema: {name, schema}}.' }),
})

const output = z.looseObject({
  id: z.string().optional(),
  model: z.string(),
  choices: z.array(
    z.looseObject({
      index: z.int(),
      text: z.string(),
      finish_reason: z.string().nullable().meta({ description: '`length`: cut off at `max_tokens`.' }),
      tool_calls: z.array(z.looseObject({})).optional(),
      refusal: z.string().optional(),
      reasoning: z.string().optional(),
      annotations: z.array(z.looseObject({})).optional().meta({ description: 'The sources, if it searched the web.' }),
    }),
  ),
  usage: z.looseObject({}).optional(),
  cost: costField,
})

/** Fields that work only with an answer in one piece. */
const wholeOnly = ['logprobs', 'audio', 'modalities', 'n']

export const chat = tool({
  name: 'chat',
  title: 'Ask a chat model',
  description: [
    'Asks one of many vendors’ chat models and returns its answer. Use it for a second opinion, a cheaper or stronger',
    'model, or one that understands images. Give `prompt`, or `messages` for a whole conversation. The answer streams as',
    'progress where that is asked for. Any other field of POST /v1/chat/completions is taken as well (see the resource',
    'turnpike://api/createChatCompletion). Costs money by tokens.',
  ].join(' '),
  annotations: spending,
  input,
  output,
  routes: [path],
  async call({ prompt, system, messages = [], ...rest }, context) {
    if (prompt === undefined && messages.length === 0) {
      const message = "Missing required parameter: 'prompt', or 'messages'."
      return context.counted(() => Promise.reject(badRequest(message, 'prompt', 'missing_required_parameter')))
    }
    const conversation = [
      ...(system === undefined ? [] : [{ role: 'system', content: system }]),
      ...messages,
      ...(prompt === undefined ? [] : [{ role: 'user', content: prompt }]),
    ]
    const { stream: _, stream_options: __, ...fields } = rest
    const body = { ...fields, messages: conversation }
    const isWhole = !context.progress.isWanted || wholeOnly.some((field) => (fields[field] ?? null) !== null)
    return isWhole ? askWhole(body, context) : askStreaming(body, context)
  },
})

async function askWhole(body: object, context: ToolContext): Promise<Shown> {
  const response = await context.progress.during('The model is answering', () => context.ask(path, { json: body }))
  const { id, model, choices, usage } = (await response.json()) as WholeAnswer
  const replies = choices.map(({ index, message: said, finish_reason: finish, logprobs }) => {
    const { text, reasoning } = wordsIn(said)
    const { tool_calls, function_call, refusal, annotations, images, audio } = said
    const more = { tool_calls, function_call, refusal, reasoning, annotations, images, audio, logprobs }
    return { index, text, finish, more }
  })
  return show({ id, model, replies, usage }, costOf(response))
}

function askStreaming(body: object, context: ToolContext): Promise<Shown> {
  return context.progress.during(undefined, async () => {
    const response = await context.ask(path, {
      json: { ...body, stream: true, stream_options: { include_usage: true } },
    })
    if (response.body === null) throw new Error('a stream has no body')
    const { reply, error } = await readChatStream(response.body, context.signal, (text) => context.progress.add(text))
    if (error === undefined) return show(reply)
    throw new CutShort(arrivedBlocks(reply), error)
  })
}

type WholeAnswer = {
  readonly id?: string
  readonly model: string
  readonly choices: readonly {
    readonly index: number
    readonly finish_reason: string | null
    readonly logprobs?: unknown
    readonly message: Worded & Readonly<Record<string, unknown>>
  }[]
  readonly usage?: object
}

function show(reply: ChatReply, cost?: string): Shown {
  const { id, model, replies, usage } = reply
  const structured = {
    id,
    model,
    choices: replies.map(({ index, text, finish, more }) => ({
      index,
      text,
      finish_reason: finish,
      ...Object.fromEntries(Object.entries(more).filter(([, value]) => !isEmpty(value))),
    })),
    usage,
    cost,
  }
  return { blocks: textBlocks(reply), structured }
}

/**
 * What had arrived of an answer that broke off. All of it is charged, so reasoning, or a part of a tool call, is shown
 * too, in the same JSON as that of a whole answer.
 */
function arrivedBlocks(reply: ChatReply): readonly ContentBlock[] {
  const { blocks, structured } = show(reply)
  const isTextAlone = reply.replies.every(({ more }) => Object.values(more).every(isEmpty))
  return isTextAlone ? blocks : [...blocks, { type: 'text', text: JSON.stringify(structured) }]
}

/** The forms in which vendors write that a field is empty. */
function isEmpty(value: unknown): boolean {
  return value === undefined || value === null || value === '' || (Array.isArray(value) && value.length === 0)
}

function textBlocks({ replies }: ChatReply): ContentBlock[] {
  return replies.flatMap(({ text }) => (text === '' ? [] : [{ type: 'text' as const, text }]))
}
