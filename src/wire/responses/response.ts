import type { Json, JsonObject } from '../../base/json.ts'
import { unixSeconds } from '../../base/moment.ts'
import type { ChatAsk, ReplyName } from '../../capabilities/chat.ts'
import type { Finish } from '../../capabilities/conversation.ts'
import type { Usage } from '../../capabilities/usage.ts'
import { objectIn, objectsIn } from '../loose.ts'
import { writeUsage } from './usage.ts'

export type ResponseState = {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed'
  readonly finish?: Finish | undefined
  readonly output: readonly JsonObject[]
  readonly usage?: Usage
  readonly error?: JsonObject
}

/** Why an answer with this finish is incomplete; an answer with any other finish is complete. */
const reasons: { readonly [F in Finish]?: string } = { length: 'max_output_tokens', refusal: 'content_filter' }

export function statusOf(finish: Finish | undefined): 'completed' | 'incomplete' {
  return finish !== undefined && reasons[finish] !== undefined ? 'incomplete' : 'completed'
}

/** The part that the ids of the answer and its items share. */
export function nameOf({ requestId }: ReplyName): string {
  return requestId.replace(/^req_/, '')
}

/**
 * Writes the response at any point of its life. It repeats the request as the client wrote it; a stream does so three
 * times, so this part, which may be long, is serialised once.
 */
export function openResponse(ask: ChatAsk, name: ReplyName): (state: ResponseState) => string {
  const repeated = JSON.stringify(repeat(ask, name)).slice(0, -1)
  return ({ status, finish, output, usage, error }) => {
    const reason = finish === undefined || status !== 'incomplete' ? undefined : reasons[finish]
    const state = {
      status,
      completed_at: status === 'completed' ? unixSeconds(name.createdAt + name.elapsedMs()) : null,
      error: error ?? null,
      incomplete_details: reason === undefined ? null : { reason },
      output,
      usage: usage === undefined ? null : writeUsage(usage),
    }
    return `${repeated},${JSON.stringify(state).slice(1)}`
  }
}

function repeat({ native, model }: ChatAsk, name: ReplyName): JsonObject {
  const text = objectIn(native['text'])
  const reasoning = objectIn(native['reasoning'])
  return {
    id: `resp_${nameOf(name)}`,
    object: 'response',
    created_at: unixSeconds(name.createdAt),
    access_programs: null,
    background: false,
    instructions: native['instructions'] ?? null,
    max_output_tokens: native['max_output_tokens'] ?? null,
    max_tool_calls: native['max_tool_calls'] ?? null,
    metadata: native['metadata'] ?? {},
    model,
    parallel_tool_calls: native['parallel_tool_calls'] ?? true,
    previous_response_id: null,
    prompt_cache_key: native['prompt_cache_key'] ?? null,
    reasoning: {
      effort: reasoning['effort'] ?? null,
      summary: reasoning['summary'] ?? reasoning['generate_summary'] ?? null,
    },
    safety_identifier: native['safety_identifier'] ?? null,
    service_tier: 'default',
    store: false,
    temperature: native['temperature'] ?? 1,
    text: { format: text['format'] ?? { type: 'text' }, verbosity: text['verbosity'] ?? 'medium' },
    tool_choice: native['tool_choice'] ?? 'auto',
    tools: objectsIn(native['tools']).flatMap(repeatTool),
    top_logprobs: native['top_logprobs'] ?? 0,
    top_p: native['top_p'] ?? 1,
    truncation: 'disabled',
    ...(typeof native['user'] === 'string' && { user: native['user'] }),
  }
}

/** Adds the fields that clients rely on. A search that was not offered is left out. */
function repeatTool(tool: JsonObject): Json[] {
  if (tool['external_web_access'] === false) return []
  if (tool['type'] !== 'function') return [tool]
  return [{ ...tool, parameters: tool['parameters'] ?? null, strict: tool['strict'] ?? null }]
}
