import { type Fields, fieldsIn, isGiven, itemsIn, textIn } from '../fields.ts'
import type { Lifetime, Mark } from '../marked-cache.ts'
import { createPrompt, feedFixed, feedMedia, feedText, fingerprintOf, type Prompt } from '../prompt.ts'
import { type Message, resultBlocks } from './check-messages.ts'
import { invalid } from './errors.ts'
import { checkExtras, checkOneOf, fieldsAt } from './shape.ts'

const frameTokens = 3
const mediaTokens = 85
const breakpointsMax = 4

/** The prompt as the vendor counts and caches it: tools, then system, then messages, with a mark after every block. */
export type Fed = { readonly prompt: Prompt; readonly promptTokens: number; readonly marks: readonly Mark[] }

type Feeding = { readonly prompt: Prompt; readonly marks: Mark[]; media: number }

export function feedRequest(
  body: Fields,
  bodyText: string,
  system: readonly Fields[],
  messages: readonly Message[],
): Fed {
  const feeding: Feeding = { prompt: createPrompt(), marks: [], media: 0 }
  for (const [index, tool] of itemsIn(body.tools).entries()) {
    const { cache_control: control, ...rest } = fieldsIn(tool)
    feedText(feeding.prompt, JSON.stringify(rest))
    mark(feeding, `tools.${index}`, control)
  }
  for (const [index, block] of system.entries()) feedBlock(feeding, `system.${index}`, block)
  for (const [index, { role, blocks }] of messages.entries()) {
    feedFixed(feeding.prompt, role, frameTokens)
    for (const [at, block] of blocks.entries()) feedBlock(feeding, `messages.${index}.content.${at}`, block)
  }
  // A number such as 1e20 grows when serialised again, but no prompt may have more tokens than its request has bytes.
  const tokensMax = Buffer.byteLength(bodyText) + feeding.media * mediaTokens
  const promptTokens = Math.min(feeding.prompt.tokens, tokensMax)
  const marks = markLast(feeding.marks, body.cache_control)
  checkBreakpoints(marks)
  return { prompt: feeding.prompt, promptTokens, marks: marks.filter(({ tokens }) => tokens <= promptTokens) }
}

function feedBlock(feeding: Feeding, place: string, block: Fields): void {
  const { prompt } = feeding
  switch (block.type) {
    // The model does not read the thinking of earlier turns again.
    case 'thinking':
    case 'redacted_thinking':
      return
    case 'text':
      feedText(prompt, textIn(block.text))
      break
    case 'image':
      feedSource(feeding, fieldsIn(block.source))
      break
    case 'document':
      feedDocument(feeding, block)
      break
    case 'tool_result':
      feedFixed(prompt, textIn(block.tool_use_id), frameTokens)
      for (const [at, part] of resultBlocks(block).entries()) feedBlock(feeding, `${place}.content.${at}`, part)
      break
    default: {
      const { cache_control: _, type, ...rest } = block
      feedFixed(prompt, textIn(type), frameTokens)
      feedText(prompt, JSON.stringify(rest))
    }
  }
  mark(feeding, place, block.cache_control)
}

function feedDocument(feeding: Feeding, { source, title, context }: Fields): void {
  feedText(feeding.prompt, textIn(title))
  feedText(feeding.prompt, textIn(context))
  const fields = fieldsIn(source)
  if (fields.type === 'text') feedText(feeding.prompt, textIn(fields.data))
  else if (fields.type === 'content') {
    for (const part of resultBlocks(fields)) feedText(feeding.prompt, textIn(part.text))
  } else feedSource(feeding, fields)
}

function feedSource(feeding: Feeding, { data, url, file_id: file }: Fields): void {
  feeding.media += 1
  feedMedia(feeding.prompt, textIn(data) || textIn(url) || textIn(file), mediaTokens)
}

function mark({ prompt, marks }: Feeding, place: string, control: unknown): void {
  const lifetime = readLifetime(`${place}.cache_control`, control)
  marks.push({ tokens: prompt.tokens, fingerprint: fingerprintOf(prompt), ...(lifetime && { lifetime }) })
}

/** A `cache_control` on the whole request applies to its last block. */
function markLast(marks: readonly Mark[], control: unknown): readonly Mark[] {
  const lifetime = readLifetime('cache_control', control)
  const last = marks.at(-1)
  if (!lifetime || !last || last.lifetime) return marks
  return [...marks.slice(0, -1), { ...last, lifetime }]
}

function readLifetime(place: string, control: unknown): Lifetime | undefined {
  if (!isGiven(control)) return undefined
  const { type, ttl } = fieldsAt(place, control)
  checkOneOf(`${place}.type`, type, ['ephemeral'])
  checkExtras(place, fieldsAt(place, control), ['type', 'ttl'])
  if (isGiven(ttl)) checkOneOf(`${place}.ephemeral.ttl`, ttl, ['5m', '1h'])
  return ttl === '1h' ? '1h' : '5m'
}

function checkBreakpoints(marks: readonly Mark[]): void {
  const lifetimes = marks.flatMap(({ lifetime }) => lifetime ?? [])
  if (lifetimes.length > breakpointsMax) {
    const message = `A maximum of ${breakpointsMax} blocks with cache_control may be provided. Found ${lifetimes.length}.`
    throw invalid('', message)
  }
  if (lifetimes.lastIndexOf('1h') > lifetimes.indexOf('5m') && lifetimes.includes('5m')) {
    const message =
      "a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`."
    throw invalid('', message)
  }
}
