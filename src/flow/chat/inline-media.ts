import { badRequest, GatewayError } from '../../base/errors.ts'
import { writeFieldPath } from '../../base/field-path.ts'
import { readImageHead } from '../../base/image-head.ts'
import type { Json, JsonObject } from '../../base/json.ts'
import { GuardRefusal } from '../../base/untrusted-url.ts'
import type { ChatAsk, ChatCodec } from '../../capabilities/chat.ts'
import type { Conversation, Media, MediaLink, Turn, UserBlock } from '../../capabilities/conversation.ts'
import type { FetchLink } from '../../upstream/links.ts'
import type { ChatRouted } from './chat.ts'

// The limit of Google for a whole request: a larger one would be refused after everything was fetched.
const bytesMax = 20 * 1024 * 1024
const linksMax = 16
const sideBySideMax = 4
/** The types that each kind of block may link to: a video behind an image link would cost far more than the hold. */
const readable = {
  image: /^image\//,
  audio: /^audio\//,
  video: /^video\//,
  document: /^application\/pdf$|^text\//,
} as const

type Asked = Pick<ChatRouted, 'route' | 'signal' | 'linkTime' | 'elapsedMs'> & {
  readonly ask: Pick<ChatAsk, 'native'>
}

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
  const fetched = await fetchAll(left, asked, fetchLink)
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
  const fetched = await fetchAll(links, routed, fetchLink)
  return { ...routed, ask: codec.replaceLinks(ask, ({ url }) => dataUrlOf(fetched.get(url))) }
}

function dataUrlOf(media: FetchedMedia | undefined): string {
  if (media === undefined) throw new GatewayError('bug', 'a link was not fetched')
  return `data:${media.mediaType};base64,${media.base64}`
}

type FetchedMedia = Extract<Media, { kind: 'bytes' }>

/** Fetches links by the rules for strangers, several at a time. */
async function fetchAll(
  links: readonly MediaLink[],
  asked: Asked,
  fetchLink: FetchLink,
): Promise<ReadonlyMap<string, FetchedMedia>> {
  if (links.length > linksMax) {
    throw badRequest(`This model takes at most ${linksMax} linked files in one request.`, 'messages')
  }
  const { route, signal, ask } = asked
  const fetch = asked.linkTime.bound(fetchLink, () => asked.elapsedMs())
  const left = [...links]
  const fetched = new Map<string, FetchedMedia>()
  const stop = new AbortController()
  const until = AbortSignal.any([signal, stop.signal])
  const shareMax = Math.ceil(bytesMax / Math.min(sideBySideMax, links.length))
  const larger: MediaLink[] = []
  let room = bytesMax
  const take = async ({ kind, url }: MediaLink, share: number) => {
    // Reserved before the fetch, so that fetches side by side do not use the same room twice.
    room -= share
    let used = 0
    try {
      const link = { transport: 'guarded', url, bytesMax: share } as const
      const { mediaType: told, body } = await fetch(link, route.channel, until)
      const mediaType = (kind === 'image' ? imageTypeIn(body) : undefined) ?? told
      if (!readable[kind].test(mediaType)) throw notMedia(kind)
      used = body.length
      fetched.set(url, { kind: 'bytes', mediaType, base64: Buffer.from(body).toString('base64') })
    } finally {
      room += share - used
    }
  }
  const work = async () => {
    for (let link = left.pop(); link !== undefined; link = left.pop()) {
      const share = Math.min(room, shareMax)
      try {
        await take(link, share)
      } catch (thrown) {
        if (!isTooLarge(thrown) || share === bytesMax) throw atLink(thrown, link, ask.native)
        larger.push(link)
      }
    }
  }
  try {
    await Promise.all(Array.from({ length: sideBySideMax }, work))
    // A file that exceeds its share is fetched again after the others, with all the room that those have left.
    for (const link of larger) {
      await take(link, room).catch((thrown: unknown) => {
        throw atLink(thrown, link, ask.native)
      })
    }
  } catch (thrown) {
    stop.abort() // the other files would be fetched for nothing
    throw thrown
  }
  return fetched
}

/** What an image is by its bytes: storage services often serve files without their type, or with a wrong one. */
function imageTypeIn(body: Uint8Array): string | undefined {
  const head = readImageHead(body)
  return typeof head === 'object' ? head.mediaType : undefined
}

function isTooLarge(thrown: unknown): boolean {
  return thrown instanceof GuardRefusal && thrown.reason === 'too-large'
}

function notMedia(kind: keyof typeof readable) {
  return badRequest(`The URL leads to no ${kind}.`, undefined, 'invalid_url')
}

/** Adds to the refusal of a linked file the field that holds the link. */
function atLink(thrown: unknown, link: MediaLink, body: JsonObject): unknown {
  if (!(thrown instanceof GatewayError) || thrown.kind !== 'bad-request') return thrown
  const param = pathTo(link, body, []) ?? link.at
  // The path has names in it that the client chose, of any length: `badRequest` shortens them.
  const { message, details } = badRequest(`Invalid '${param}': ${thrown.message}`, param, thrown.details.code)
  return new GatewayError(thrown.kind, message, { ...thrown.details, ...details })
}

const address = /url$/

/** Finds the field of the link: inside its block, with a name that ends in `url`. The same text may stand elsewhere. */
function pathTo(link: MediaLink, value: Json | undefined, path: readonly PropertyKey[]): string | undefined {
  if (value === link.url && address.test(String(path.at(-1)))) {
    const written = writeFieldPath(path)
    if (written.startsWith(`${link.at}.`)) return written
  }
  if (typeof value !== 'object' || value === null) return undefined
  for (const [name, part] of Object.entries(value)) {
    const found = pathTo(link, part, [...path, Array.isArray(value) ? Number(name) : name])
    if (found !== undefined) return found
  }
  return undefined
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
