import type { StreamFacts } from '../../capabilities/chat.ts'
import type { Usage } from '../../capabilities/usage.ts'
import type { Leg } from '../legs.ts'
import type { ChatRouted } from './chat.ts'
import { estimateOutput } from './estimate.ts'

/** Counting a long prompt takes milliseconds, so it is done once, and only where the vendor does not. */
export function inputCounter({ codec, ask }: Pick<ChatRouted, 'codec' | 'ask'>): () => number {
  let counted: number | undefined
  return () => (counted ??= codec.estimateInput(ask))
}

export function legOfStream(routed: ChatRouted, facts: StreamFacts, inputTokens = inputCounter(routed)): Leg {
  const { ask, attemptId } = routed
  return {
    attemptId,
    count() {
      const { usage, outputEvents, finished, ended } = facts
      if (outputEvents === 0 && !finished && !ended) return undefined
      // Some vendors send the usage so far with every chunk: of a stream that was cut, it is only what had been counted.
      if (usage?.output !== undefined) return { usage, basis: finished || ended ? 'vendor' : 'estimated' }
      const output = Math.min(estimateOutput(facts), ask.outputTokensMax * ask.choices)
      // Others count the input at the start and the output at the end, which may not have come.
      return { usage: { ...(usage ?? { input: inputTokens() }), output }, basis: 'estimated' }
    },
  }
}

export function legOfAnswer(routed: ChatRouted, answer: { usage: Usage | undefined; estimateOutput(): number }): Leg {
  const { ask, attemptId, codec } = routed
  return {
    attemptId,
    count() {
      if (answer.usage !== undefined) return { usage: answer.usage, basis: 'vendor' }
      const output = Math.min(answer.estimateOutput(), ask.outputTokensMax * ask.choices)
      return { usage: { input: codec.estimateInput(ask), output }, basis: 'estimated' }
    },
  }
}
