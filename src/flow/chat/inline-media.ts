import { badRequest } from '../../base/errors.ts'
import type { Conversation, Media, ToolResultBlock, Turn, UserBlock } from '../../capabilities/conversation.ts'
import type { FetchLink } from '../../upstream/links.ts'
import type { ChatRouted } from './chat.ts'

// What a whole request to Google may weigh; one that is larger would be refused after all was fetched.
const bytesMax = 20 * 1024 * 1024
const linksMax = 16
const sideBySideMax = 4
const readable = /^(?:image|audio|video)\/|^application\/pdf$/

/** The conversation with what it links to in it, for a vendor that does not read from the web itself. */
export async function inlineMedia(
  conversation: Conversation,
  isReadByVendor: (url: string) => boolean,
  { route, signal }: Pick<ChatRouted, 'route' | 'signal'>,
  fetchLink: FetchLink,
): Promise<Conversation> {
  const links = linksOf(conversation).filter((url) => !isReadByVendor(url))
  if (links.length === 0) return conversation
  if (links.length > linksMax) {
    throw badRequest(`This model takes at most ${linksMax} linked files in one request.`, 'messages')
  }
  const fetched = new Map<string, Media>()
  let spent = 0
  const work = async () => {
    for (let url = links.pop(); url !== undefined; url = links.pop()) {
      const link = { transport: 'guarded', url, bytesMax: bytesMax - spent } as const
      const { mediaType, body } = await fetchLink(link, route.channel, signal)
      if (!readable.test(mediaType)) {
        throw badRequest(
          'What a link in the messages leads to is no picture, sound, film or PDF.',
          'messages',
          'invalid_url',
        )
      }
      spent += body.length
      if (spent > bytesMax)
        throw badRequest('What the messages link to is too large together.', 'messages', 'invalid_url')
      fetched.set(url, { kind: 'bytes', mediaType, base64: Buffer.from(body).toString('base64') })
    }
  }
  await Promise.all(Array.from({ length: sideBySideMax }, work))
  return { ...conversation, turns: conversation.turns.map((turn) => withFetched(turn, fetched)) }
}

function linksOf({ turns }: Conversation): string[] {
  const urls = new Set<string>()
  const look = (block: UserBlock) => {
    if (block.kind === 'tool-result') block.blocks.forEach(look)
    else if ('media' in block && block.media.kind === 'url') urls.add(block.media.url)
  }
  for (const turn of turns) if (turn.role === 'user') turn.blocks.forEach(look)
  return [...urls]
}

function withFetched(turn: Turn, fetched: ReadonlyMap<string, Media>): Turn {
  return turn.role === 'user' ? { ...turn, blocks: turn.blocks.map((block) => inPlace(block, fetched)) } : turn
}

function inPlace<B extends UserBlock>(block: B, fetched: ReadonlyMap<string, Media>): B {
  if (block.kind === 'tool-result') {
    const { blocks } = block as ToolResultBlock
    return { ...block, blocks: blocks.map((one) => inPlace(one, fetched)) }
  }
  const media = 'media' in block && block.media.kind === 'url' ? fetched.get(block.media.url) : undefined
  return media === undefined ? block : { ...block, media }
}
