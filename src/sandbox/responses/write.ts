import type { Units } from '../bill.ts'
import { writeTokenLogprob } from '../chat/write.ts'
import { type Fields, fieldsIn, isGiven, itemsIn, parsedOr } from '../fields.ts'
import type { ResponsesAsk } from './ask.ts'
import type { Composition, Item, Message } from './compose.ts'

type State = {
  readonly status: 'in_progress' | 'completed' | 'incomplete' | 'failed'
  readonly output: readonly unknown[]
}

/** The complete answer as the vendor writes it, with the fields that it repeats from the request. */
export function writeResponse(ask: ResponsesAsk, composition: Composition, { status, output }: State): unknown {
  const { body, effort, steering } = ask
  const isOver = status === 'completed' || status === 'incomplete'
  const { summary } = fieldsIn(body.reasoning)
  const { format, verbosity } = fieldsIn(body.text)
  return {
    id: composition.id,
    object: 'response',
    created_at: composition.created,
    status,
    background: false,
    completed_at: status === 'completed' ? composition.created : null,
    error: status === 'failed' ? failure : null,
    incomplete_details: status === 'incomplete' ? { reason: composition.cutBy } : null,
    instructions: body.instructions ?? null,
    max_output_tokens: body.max_output_tokens ?? null,
    max_tool_calls: body.max_tool_calls ?? null,
    model: composition.model,
    output,
    parallel_tool_calls: body.parallel_tool_calls ?? true,
    previous_response_id: null,
    prompt_cache_key: body.prompt_cache_key ?? null,
    reasoning: { effort, summary: summary ?? null },
    safety_identifier: body.safety_identifier ?? null,
    service_tier: status === 'in_progress' ? 'auto' : 'default',
    store: body.store ?? true,
    temperature: body.temperature ?? 1,
    text: { format: format ?? { type: 'text' }, verbosity: verbosity ?? 'medium' },
    tool_choice: body.tool_choice ?? 'auto',
    tools: itemsIn(body.tools).map((tool) => writeTool(fieldsIn(tool))),
    top_logprobs: body.top_logprobs ?? 0,
    top_p: body.top_p ?? 1,
    truncation: body.truncation ?? 'disabled',
    usage: isOver && !steering.has('nousage') ? writeUsage(composition.units) : null,
    user: body.user ?? null,
    metadata: body.metadata ?? {},
    access_programs: null,
  }
}

const failure = {
  code: 'server_error',
  message: 'An error occurred while processing your request. You can retry your request.',
}

/** Fills in the defaults of a function tool. */
function writeTool(tool: Fields): Fields {
  if (tool.type !== 'function') return tool
  const { description = null, parameters = null, strict } = tool
  return { ...tool, description, parameters, strict: isGiven(strict) ? strict : true }
}

/** As at the vendor, `input_tokens` includes the cached tokens and `output_tokens` the reasoning. */
function writeUsage({ input, cachedInput, cacheWrite5m = 0, output, reasoning }: Units): unknown {
  const prompt = input + cachedInput + cacheWrite5m
  return {
    input_tokens: prompt,
    input_tokens_details: { cached_tokens: cachedInput, cache_write_tokens: cacheWrite5m },
    output_tokens: output,
    output_tokens_details: { reasoning_tokens: reasoning },
    total_tokens: prompt + output,
  }
}

export function writeItem(ask: ResponsesAsk, item: Item): unknown {
  switch (item.type) {
    case 'reasoning': {
      const { id, summary, sealed } = item
      const parts = summary.length > 0 ? [writeSummary(summary.join(''))] : []
      return { id, type: item.type, summary: parts, encrypted_content: sealed }
    }
    case 'message':
      return { ...writeEmptyItem(item), status: statusOf(item), content: [writePart(ask, item)] }
    case 'web_search_call': {
      const sources = item.found.map(({ url }) => ({ type: 'url', url }))
      const isSourced = ask.includes.has('web_search_call.action.sources')
      const action = { type: 'search', query: item.query, queries: [item.query], ...(isSourced && { sources }) }
      return { id: item.id, type: item.type, status: 'completed', action }
    }
    case 'tool_search_call':
      // Arguments that were cut short are written as an empty object.
      return { ...writeEmptyItem(item), status: statusOf(item), arguments: parsedOr(item.input.join(''), {}) }
    case 'function_call':
      return { ...writeEmptyItem(item), status: statusOf(item), arguments: item.input.join('') }
    case 'custom_tool_call':
      return { ...writeEmptyItem(item), status: statusOf(item), input: item.input.join('') }
  }
}

/** An item as it starts in a stream: empty where deltas fill it, otherwise complete. */
export function writeEmptyItem(item: Item): object {
  const { id, type } = item
  switch (type) {
    case 'reasoning':
      // The vendor encrypts reasoning again when the item ends, so the content at its start cannot be used.
      return { id, type, summary: [], encrypted_content: item.sealed?.slice(0, -8) }
    case 'message':
      return { id, type, status: 'in_progress', content: [], role: 'assistant' }
    case 'web_search_call':
      return { id, type, status: 'in_progress' }
    case 'tool_search_call':
      return { id, type, status: 'in_progress', execution: 'client', call_id: item.callId, arguments: {} }
    case 'function_call':
    case 'custom_tool_call': {
      const { callId, name, namespace } = item
      const input = type === 'function_call' ? { arguments: '' } : { input: '' }
      // undefined leaves the key out
      return { id, type, status: 'in_progress', ...input, call_id: callId, name, namespace }
    }
  }
}

function statusOf({ isWhole }: { readonly isWhole: boolean }): string {
  return isWhole ? 'completed' : 'incomplete'
}

export function writeSummary(text: string): unknown {
  return { type: 'summary_text', text }
}

export function writePart(ask: ResponsesAsk, { part, tokens, citations }: Message): unknown {
  if (part === 'refusal') return { type: 'refusal', refusal: tokens.join('') }
  return { type: 'output_text', annotations: citations, logprobs: writeLogprobs(ask, tokens), text: tokens.join('') }
}

export function writeLogprobs({ alternatives }: ResponsesAsk, tokens: readonly string[]): unknown[] {
  return alternatives === undefined ? [] : tokens.map((token) => writeTokenLogprob(token, alternatives))
}
