import { type Fields, fieldsIn, isGiven, textIn } from '../fields.ts'
import { createPrompt, feedFixed, feedMedia, feedText, type Prompt } from '../prompt.ts'
import { partsOf } from './check-contents.ts'

export type Modality = 'TEXT' | 'IMAGE' | 'AUDIO' | 'VIDEO' | 'DOCUMENT'

/** A counted prompt, and how many of its tokens each kind of media took. */
export type CountedPrompt = {
  readonly prompt: Prompt
  readonly tokens: number
  readonly media: ReadonlyMap<Modality, number>
}

// The vendor's count for an image of up to 384 by 384, and for a page of a document.
const mediaTokens = 258
const frameTokens = 1

/** Counts a request in the order in which the vendor caches it: system, tools, contents. */
export function countPrompt(body: Fields, contents: readonly Fields[], bodyText: string): CountedPrompt {
  const prompt = createPrompt()
  const media = new Map<Modality, number>()
  feedContent(prompt, fieldsIn(body.systemInstruction), media)
  if (isGiven(body.tools)) feedText(prompt, JSON.stringify(body.tools))
  for (const content of contents) {
    feedFixed(prompt, textIn(content.role), frameTokens)
    feedContent(prompt, content, media)
  }
  const mediaTotal = [...media.values()].reduce((sum, tokens) => sum + tokens, 0)
  // A number such as 1e20 grows when serialised again, but no prompt may have more tokens than its request has bytes.
  return { prompt, tokens: Math.min(prompt.tokens, Buffer.byteLength(bodyText) + mediaTotal), media }
}

function feedContent(prompt: Prompt, content: Fields, media: Map<Modality, number>): void {
  for (const part of partsOf(content)) {
    feedText(prompt, textIn(part.text))
    for (const item of [part.functionCall, part.functionResponse, part.executableCode, part.codeExecutionResult]) {
      if (!isGiven(item)) continue
      const { name, args, response, ...rest } = fieldsIn(item)
      feedText(prompt, textIn(name))
      feedText(prompt, JSON.stringify(args ?? response ?? rest))
    }
    const medium = fieldsIn(part.inlineData ?? part.fileData)
    if (!isGiven(part.inlineData) && !isGiven(part.fileData)) continue
    const modality = modalityOf(textIn(medium.mimeType))
    media.set(modality, (media.get(modality) ?? 0) + mediaTokens)
    feedMedia(prompt, textIn(medium.data) || textIn(medium.fileUri), mediaTokens)
  }
}

function modalityOf(mimeType: string): Modality {
  const kind = mimeType.split('/')[0]
  if (kind === 'audio') return 'AUDIO'
  if (kind === 'video') return 'VIDEO'
  return kind === 'application' || kind === 'text' ? 'DOCUMENT' : 'IMAGE'
}
