import type { ChatAnswer, ChatAsk, StreamFacts } from '../../capabilities/chat.ts'
import { isWhole, tokensOf, type Counted, type Usage } from '../../capabilities/usage.ts'
import type { Leg } from '../legs.ts'
import type { ChatRouted } from './chat.ts'
import { bytesPerToken, estimateImages, estimateOutput } from './estimate.ts'

export function legOfStream({ ask, attemptId, codec }: ChatRouted, facts: StreamFacts): Leg {
  function made(): Counted | undefined {
    const { usage, outputEvents, finished, ended } = facts
    const isOver = finished || ended
    if (outputEvents === 0 && !isOver) return undefined
    if (isWhole(usage) && isOver) return { usage, basis: 'vendor' }
    const read = usage?.input === undefined ? { ...usage, input: codec.estimateInput(ask) } : usage
    if (usage?.output !== undefined && isOver) return { usage: read, basis: 'estimated' }
    // Some vendors send the usage so far with every chunk, and some of those count the output only at its end: after a
    // stream was cut off, their number is what was counted by then, and may be 0 after a page of text.
    const outputMax = ask.outputTokensMax * ask.choices
    // What such a number has beyond words and reasoning is the images, which not every vendor counts apart.
    const drawn = Math.max(0, (usage?.output ?? 0) - (usage?.reasoning ?? 0) - estimateOutput(facts))
    const imageOutput = Math.max(usage?.imageOutput ?? 0, Math.min(estimateImages(facts), outputMax) - drawn)
    const estimated = Math.min(estimateOutput(facts), Math.max(0, outputMax - imageOutput))
    const output = Math.max(usage?.output ?? 0, estimated)
    const said = { output, ...(imageOutput > 0 && { imageOutput }) }
    if (usage?.output !== undefined) return { usage: { ...read, ...said }, basis: 'estimated' }
    // Other vendors count the input at the start and the output at the end, which may not have come.
    return { usage: { ...withHosted(read, facts, ask), ...said }, basis: 'estimated' }
  }

  return {
    attemptId,
    made,
    count() {
      const { isOwed = true, finished, ended, outputEvents } = facts
      if (outputEvents === 0 && !finished) return undefined
      return isOwed || finished || ended ? made() : undefined
    },
  }
}

/** Adds the vendor's web searches and their findings since it counted the prompt; never more than the hold covers. */
function withHosted(usage: Usage, { hosted }: StreamFacts, ask: ChatAsk): Usage {
  if (hosted === undefined) return usage
  const { input = 0, webSearch = 0 } = usage
  const room = Math.max(0, ask.inputTokensMax - tokensOf(usage))
  const found = Math.min(Math.ceil(hosted.foundBytes / bytesPerToken), room)
  const searches = Math.max(webSearch, Math.min(hosted.searches, ask.searchesMax))
  return { ...usage, input: input + found, ...(searches > 0 && { webSearch: searches }) }
}

type CountedAnswer = Pick<ChatAnswer, 'usage' | 'estimateOutput' | 'images'>

export function legOfAnswer(routed: ChatRouted, answer: CountedAnswer): Leg {
  return { attemptId: routed.attemptId, count: () => countAnswer(routed, answer) }
}

/** What a whole answer used: the vendor's counts, with our estimate for those that it left out. */
export function countAnswer({ ask, codec }: ChatRouted, answer: CountedAnswer): Counted {
  const { usage } = answer
  if (isWhole(usage)) return { usage, basis: 'vendor' }
  const input = usage?.input ?? codec.estimateInput(ask)
  if (usage?.output !== undefined) return { usage: { ...usage, input }, basis: 'estimated' }
  const outputMax = ask.outputTokensMax * ask.choices
  const imageOutput = Math.min(estimateImages({ images: answer.images ?? 0 }), outputMax)
  const output = Math.min(answer.estimateOutput(), outputMax - imageOutput)
  return { usage: { ...usage, input, output, ...(imageOutput > 0 && { imageOutput }) }, basis: 'estimated' }
}
