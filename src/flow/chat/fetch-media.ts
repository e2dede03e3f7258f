import { badRequest } from '../../base/errors.ts'
import { abortSignalOf } from '../../base/http/client-signal.ts'
import { readImageHead } from '../../base/image-head.ts'
import { isPdf } from '../../base/pdf-head.ts'
import { GuardRefusal } from '../../base/untrusted-url.ts'
import type { ChatAsk } from '../../capabilities/chat.ts'
import type { MediaBytes, MediaLink } from '../../capabilities/conversation.ts'
import type { FetchLink } from '../../upstream/links.ts'
import type { ChatRouted } from './chat.ts'
import { atLink, notMedia } from './link-errors.ts'

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
} as const satisfies Record<MediaLink['kind'], RegExp>

/** The request whose links are fetched. */
export type Asked = Pick<ChatRouted, 'route' | 'signal' | 'linkTime' | 'elapsedMs'> & {
  readonly ask: Pick<ChatAsk, 'native'>
}

/** Fetches links by the rules for strangers, several at a time. Gives the files by their URLs. */
export async function fetchMedia(
  links: readonly MediaLink[],
  asked: Asked,
  fetchLink: FetchLink,
): Promise<ReadonlyMap<string, MediaBytes>> {
  if (links.length > linksMax) {
    throw badRequest(`This model takes at most ${linksMax} linked files in one request.`, 'messages')
  }
  const files = new LinkedFiles(asked, fetchLink)
  const shareMax = Math.ceil(bytesMax / Math.min(sideBySideMax, links.length))
  const left = [...links]
  const larger: MediaLink[] = []
  const work = async () => {
    for (let link = left.pop(); link !== undefined; link = left.pop()) {
      if ((await files.fetch(link, shareMax)) === 'larger') larger.push(link)
    }
  }
  try {
    await Promise.all(Array.from({ length: sideBySideMax }, work))
    // A file that exceeds its share is fetched again after the others, with all the room that those have left.
    for (const link of larger) await files.fetchLast(link)
  } catch (thrown) {
    files.stop() // the others would be fetched for nothing
    throw thrown
  }
  return files.fetched
}

/** The files of one request, with one room for all of their bytes. */
class LinkedFiles {
  readonly fetched = new Map<string, MediaBytes>()
  readonly #asked: Asked
  readonly #fetchLink: FetchLink
  readonly #stop = new AbortController()
  readonly #until: AbortSignal
  #roomBytes = bytesMax

  constructor(asked: Asked, fetchLink: FetchLink) {
    this.#asked = asked
    this.#fetchLink = asked.linkTime.bound(fetchLink, () => asked.elapsedMs())
    this.#until = AbortSignal.any([abortSignalOf(asked.signal), this.#stop.signal])
  }

  /** `larger`: the file exceeds its share of the room. Throws, naming the field, for a file that cannot be used. */
  async fetch(link: MediaLink, shareMax: number): Promise<'fetched' | 'larger'> {
    const share = Math.min(this.#roomBytes, shareMax)
    try {
      await this.#take(link, share)
      return 'fetched'
    } catch (thrown) {
      if (isTooLarge(thrown) && share < bytesMax) return 'larger'
      throw atLink(thrown, link, this.#asked.ask.native)
    }
  }

  /** The same with all the room that is left, so that a larger file cannot be used. */
  async fetchLast(link: MediaLink): Promise<void> {
    try {
      await this.#take(link, this.#roomBytes)
    } catch (thrown) {
      throw atLink(thrown, link, this.#asked.ask.native)
    }
  }

  stop(): void {
    this.#stop.abort()
  }

  async #take({ kind, url }: MediaLink, share: number): Promise<void> {
    // Reserved before the fetch, so that fetches side by side do not use the same room twice.
    this.#roomBytes -= share
    let used = 0
    try {
      const link = { transport: 'guarded', url, bytesMax: share } as const
      const { mediaType: told, body } = await this.#fetchLink(link, this.#asked.route.channel, this.#until)
      const mediaType = typeIn(kind, body) ?? told
      if (!readable[kind].test(mediaType)) throw notMedia(kind)
      used = body.length
      this.fetched.set(url, { kind: 'bytes', mediaType, base64: Buffer.from(body).toString('base64') })
    } finally {
      this.#roomBytes += share - used
    }
  }
}

/** What a file is by its bytes: storage services often serve files without their type, or with a wrong one. */
function typeIn(kind: MediaLink['kind'], body: Uint8Array): string | undefined {
  if (kind === 'document') return isPdf(body) ? 'application/pdf' : undefined
  const head = kind === 'image' ? readImageHead(body) : undefined
  return typeof head === 'object' ? head.mediaType : undefined
}

function isTooLarge(thrown: unknown): boolean {
  return thrown instanceof GuardRefusal && thrown.reason === 'too-large'
}
