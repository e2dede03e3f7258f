import { type Fields, fieldsIn, itemsIn, textIn } from '../fields.ts'
import { createPrompt, feedFixed, feedMedia, feedText, type Prompt } from '../prompt.ts'

const frameTokens = 3
const mediaTokens = 85

type Fed = { readonly prompt: Prompt; readonly promptTokens: number }
type Feeding = { readonly prompt: Prompt; media: number }

/** Counts the prompt in the order in which the vendor caches it: tools, instructions, then items. */
export function feedRequest({ tools, instructions }: Fields, bodyText: string, items: readonly Fields[]): Fed {
  const feeding: Feeding = { prompt: createPrompt(), media: 0 }
  const { prompt } = feeding
  if (itemsIn(tools).length > 0) feedText(prompt, JSON.stringify(tools))
  if (textIn(instructions) !== '') {
    feedFixed(prompt, 'instructions', frameTokens)
    feedText(prompt, textIn(instructions))
  }
  for (const item of items) feedItem(feeding, item)
  // A number such as 1e20 grows when serialised again, but no prompt may have more tokens than its request has bytes.
  return { prompt, promptTokens: Math.min(prompt.tokens, Buffer.byteLength(bodyText) + feeding.media * mediaTokens) }
}

function feedItem(feeding: Feeding, item: Fields): void {
  const { prompt } = feeding
  switch (item.type) {
    // The model does not read the reasoning of earlier turns again.
    case 'reasoning':
      return
    case 'message':
      feedFixed(prompt, textIn(item.role), frameTokens)
      return feedContent(feeding, item.content)
    case 'function_call_output':
    case 'custom_tool_call_output':
      feedFixed(prompt, textIn(item.call_id), frameTokens)
      return feedContent(feeding, item.output)
    case 'function_call':
    case 'custom_tool_call':
      feedText(prompt, textIn(item.name))
      return feedText(prompt, textIn(item.arguments) || textIn(item.input))
    default: {
      const { type, id: _, status: _status, ...rest } = item
      feedFixed(prompt, textIn(type), frameTokens)
      feedText(prompt, JSON.stringify(rest))
    }
  }
}

function feedContent(feeding: Feeding, content: unknown): void {
  if (typeof content === 'string') return feedText(feeding.prompt, content)
  for (const part of itemsIn(content).map(fieldsIn)) {
    const { type, text, refusal } = part
    if (type === 'input_image' || type === 'input_file') feedPart(feeding, part)
    else feedText(feeding.prompt, textIn(text) || textIn(refusal))
  }
}

function feedPart(feeding: Feeding, part: Fields): void {
  feeding.media += 1
  feedMedia(feeding.prompt, textIn(part.image_url ?? part.file_data ?? part.file_url ?? part.file_id), mediaTokens)
}
