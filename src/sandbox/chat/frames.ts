import { disturb } from '../disturb.ts'
import { type Frame, free } from '../event-stream.ts'
import type { ChatAsk } from './ask.ts'
import type { Choice, Composition, ToolCall } from './compose.ts'
import { errorBody, errorForStatus } from './errors.ts'
import { paddingBy } from '../padding.ts'
import { showsReasoning } from './reasoning.ts'
import { writeLogprobs, writeUsage } from './write.ts'

/** The events of a stream in order, produced as they are pulled. */
export function frames(ask: ChatAsk, composition: Composition): Generator<Frame, void> {
  const regular = regularFrames(ask, composition)
  return disturb(ask.isPadded ? padded(regular, ask.seed) : regular, ask.steering, {
    error: () => JSON.stringify(errorBody(ask.model.vendor, errorForStatus(500), 'req_midstream')),
    malformed: () => '{"id":"chatcmpl-broken","choices":[{"index":0,"delta":{"content":"unfini',
  })
}

/** Adds padding to every chunk. `[DONE]` is not a chunk and stays as it is. */
function* padded(regular: Iterable<Frame>, seed: number): Generator<Frame, void> {
  const padding = paddingBy(seed)
  for (const frame of regular) {
    const isChunk = frame.text.endsWith('}')
    yield isChunk ? { ...frame, text: `${frame.text.slice(0, -1)}${padding()}}` } : frame
  }
}

/** The vendors that report usage in the finish chunk whether or not the client asked for it. */
const unasked: ReadonlySet<string> = new Set(['mistral', 'perplexity'])

function* regularFrames(ask: ChatAsk, composition: Composition): Generator<Frame, void> {
  const { id, created, model, fingerprint, choices, units } = composition
  const { steering, includeUsage } = ask
  const shared = {
    id,
    object: 'chat.completion.chunk',
    created,
    model,
    service_tier: 'default',
    system_fingerprint: fingerprint,
  }
  const head = `${JSON.stringify(shared).slice(0, -1)},"choices":[`
  const tail = includeUsage ? '],"usage":null}' : ']}'
  const isUnasked = unasked.has(ask.model.vendor)
  const showsUsage = (includeUsage || isUnasked) && !steering.has('nousage')
  const isInline = isUnasked || steering.has('inline-usage')
  let open = choices.length
  for (const step of interleave(choices.map((choice) => choiceSteps(ask, choice)))) {
    const isEnd = step.kind === 'end' && (open -= 1) === 0
    const usageTail = isEnd && showsUsage && isInline ? `],"usage":${JSON.stringify(writeUsage(units))}}` : tail
    // Billing ends only with the end of the last choice.
    const kind = step.kind === 'end' && !isEnd ? 'framing' : step.kind
    yield { kind, text: head + step.text + usageTail, output: step.output, reasoning: step.reasoning }
  }
  if (showsUsage && !isInline) yield free('framing', `${head}],"usage":${JSON.stringify(writeUsage(units))}}`)
  yield free('framing', '[DONE]')
}

/** One step of each choice in turn, in the order of a vendor that generates choices in parallel. */
function* interleave(choices: readonly Generator<Frame, void>[]): Generator<Frame, void> {
  for (let running = [...choices]; running.length > 0;) {
    const left: Generator<Frame, void>[] = []
    for (const steps of running) {
      const step = steps.next()
      if (step.done) continue
      left.push(steps)
      yield step.value
    }
    running = left
  }
}

function* choiceSteps(ask: ChatAsk, choice: Choice): Generator<Frame, void> {
  const { index, reasoning, reasoningTokens, content, calls, finish } = choice
  const isShown = showsReasoning(ask.model)
  const step = (kind: Frame['kind'], delta: string, output: number, thought = 0): Frame => ({
    kind,
    text: `{"index":${index},"delta":${delta},"logprobs":null,"finish_reason":null}`,
    output,
    reasoning: thought,
  })
  yield step('framing', roleDelta(ask, choice), 0)
  for (const token of reasoning) {
    yield step('content', `{"content":null,"reasoning_content":${JSON.stringify(token)}}`, 1, 1)
  }
  // Hidden reasoning has no chunk of its own, so it is charged with the first chunk after it.
  let hidden = isShown ? 0 : reasoningTokens
  const contentEnd = isShown && reasoning.length > 0 ? ',"reasoning_content":null}' : '}'
  const rounds = ask.steering.has('endless') && content.length > 0 ? Infinity : 1
  for (let round = 0; round < rounds; round += 1) {
    for (const token of content) {
      const text = JSON.stringify(token)
      const delta = `{"content":${text}${contentEnd}`
      if (ask.alternatives === undefined) yield step('content', delta, 1 + hidden, hidden)
      else yield withLogprobs(step('content', delta, 1 + hidden, hidden), token, ask.alternatives)
      hidden = 0
    }
  }
  for (const [at, call] of calls.entries()) {
    for (const { delta, tokens } of ask.isLegacy ? functionDeltas(call) : callDeltas(ask.model.vendor, at, call)) {
      yield step('content', delta, tokens + hidden, hidden)
      hidden = 0
    }
  }
  const text = `{"index":${index},"delta":{},"logprobs":null,"finish_reason":"${finish}"}`
  yield { kind: 'end', text, output: hidden, reasoning: hidden }
}

function roleDelta({ model }: ChatAsk, { reasoning, calls }: Choice): string {
  if (reasoning.length > 0) return '{"role":"assistant","content":null,"reasoning_content":""}'
  const content = calls.length > 0 ? 'null' : '""'
  return showsReasoning(model)
    ? `{"role":"assistant","content":${content}}`
    : `{"role":"assistant","content":${content},"refusal":null}`
}

function withLogprobs(frame: Frame, token: string, alternatives: number): Frame {
  const written = JSON.stringify(writeLogprobs([token], alternatives))
  // The delta before it may contain the same text, but only inside a string, where its quotes are escaped.
  return { ...frame, text: frame.text.replace('"logprobs":null', () => `"logprobs":${written}`) }
}

type CallDeltas = Generator<{ delta: string; tokens: number }>

/** A call in the older `functions` form. There is only one call, so no index is needed. */
function* functionDeltas({ name, nameTokens, input }: ToolCall): CallDeltas {
  yield { delta: JSON.stringify({ function_call: { name, arguments: '' } }), tokens: nameTokens }
  for (const token of input) yield { delta: JSON.stringify({ function_call: { arguments: token } }), tokens: 1 }
}

/** A call's head with its id and name, followed by fragments of its arguments that carry only `index`. */
function* callDeltas(vendor: string, index: number, call: ToolCall): CallDeltas {
  const { id, kind, name, nameTokens, input } = call
  const field = kind === 'custom' ? 'input' : 'arguments'
  const first = { index, id, type: kind, [kind]: { name, [field]: '' } }
  yield { delta: `{"tool_calls":[${JSON.stringify(first)}]}`, tokens: nameTokens }
  // DashScope repeats an empty id and the type, which an accumulator must not mistake for the call's id.
  const start = vendor === 'dashscope' ? `{"index":${index},"id":"","type":"${kind}",` : `{"index":${index},`
  for (const token of input) {
    yield { delta: `{"tool_calls":[${start}"${kind}":{"${field}":${JSON.stringify(token)}}}]}`, tokens: 1 }
  }
}
