import { GatewayError } from '../../base/errors.ts'
import type { ChatAsk, ChatCodec } from '../../capabilities/chat.ts'
import type { Conversation, Media, MediaBytes, MediaLink, Turn, UserBlock } from '../../capabilities/conversation.ts'
import type { FetchLink } from '../../upstream/links.ts'
import type { ChatRouted } from './chat.ts'
import { fetchMedia, type Asked } from './fetch-media.ts'
import { atLink, notMedia } from './link-errors.ts'

/** Puts the files that a conversation links to into it, for a vendor that does not fetch links itself. */
export async function inlineMedia(
  conversation: Conversation,
  isReadByVendor: (url: string) => boolean,
  asked: Asked,
  fetchLink: FetchLink,
): Promise<Conversation> {
  const links = linksOf(conversation)
  // What a vendor reads by its link is a page with a video, and never an image.
  for (const link of links) {
    if (link.kind === 'image' && isReadByVendor(link.url)) throw atLink(notMedia(link.kind), link, asked.ask.native)
  }
  const left = links.filter(({ url }) => !isReadByVendor(url))
  if (left.length === 0) return conversation
  const fetched = await fetchMedia(left, asked, fetchLink)
  return { ...conversation, turns: conversation.turns.map((turn) => withFetched(turn, fetched)) }
}

type Linking = { readonly ask: ChatAsk; readonly codec: Pick<ChatCodec, 'replaceLinks'> }

/** The links to media in an ask, in the client's own protocol. */
export function linksInAsk({ ask, codec }: Linking): readonly MediaLink[] {
  const links = new Map<string, MediaLink>()
  codec.replaceLinks(ask, (link) => {
    links.set(link.url, link)
    return link.url
  })
  return [...links.values()]
}

/** Puts the linked files into an ask that passes through, as `data:` URLs. */
export async function inlineLinks(
  routed: ChatRouted,
  links: readonly MediaLink[],
  fetchLink: FetchLink,
): Promise<ChatRouted> {
  const { ask, codec } = routed
  const fetched = await fetchMedia(links, routed, fetchLink)
  return { ...routed, ask: codec.replaceLinks(ask, ({ url }) => dataUrlOf(fetched.get(url))) }
}

function dataUrlOf(media: MediaBytes | undefined): string {
  if (media === undefined) throw new GatewayError('bug', 'a link was not fetched')
  return `data:${media.mediaType};base64,${media.base64}`
}

function linksOf({ turns }: Conversation): MediaLink[] {
  const links = new Map<string, MediaLink>()
  const look = (block: UserBlock) => {
    if (block.kind === 'tool-result') block.blocks.forEach(look)
    else if (block.kind !== 'text' && block.media.kind === 'url') {
      const { kind, at = 'messages' } = block
      const { url } = block.media
      links.set(url, { kind, url, at })
    }
  }
  for (const turn of turns) if (turn.role === 'user') turn.blocks.forEach(look)
  return [...links.values()]
}

function withFetched(turn: Turn, fetched: ReadonlyMap<string, Media>): Turn {
  return turn.role === 'user' ? { ...turn, blocks: turn.blocks.map((block) => inPlace(block, fetched)) } : turn
}

function inPlace<B extends UserBlock>(block: B, fetched: ReadonlyMap<string, Media>): B {
  if (block.kind === 'tool-result') {
    const { blocks } = block
    return { ...block, blocks: blocks.map((one) => inPlace(one, fetched)) }
  }
  const media = 'media' in block && block.media.kind === 'url' ? fetched.get(block.media.url) : undefined
  return media === undefined ? block : { ...block, media }
}
