import { join } from 'node:path'
import type { Clock, Timers } from '../base/clock.ts'
import { GatewayError } from '../base/errors.ts'
import type { Log } from '../base/log.ts'
import type { Mac } from '../base/secret.ts'
import type { FileSettings } from '../config/schema.ts'
import { openBucketStore } from './bucket.ts'
import { openDiskStore } from './disk.ts'
import { makeLinks, type Link } from './links.ts'
import { mediaTypeOf, nameOf, newArtifactId } from './names.ts'
import { Share } from './share.ts'
import { NoRoom, reasonOf, StoreUnreachable, type ArtifactStore, type Result, type Stored } from './store.ts'
import { startSweeper } from './sweeper.ts'

/** Keeps results that have no link of their own for a while, and serves them by a signed link of ours. */
export type Artifacts = {
  /** Whether the operator wants every result kept, not only those that need a link of ours. */
  readonly keepsAll: boolean
  /** Resolves once the link works. A stream that fails leaves nothing behind, and its failure is thrown. */
  keep(result: Result, about: About): Promise<Kept>
  /** What a link leads to. Throws `bad-request` with a code for an invalid link, `not-found` if the result is gone. */
  find(link: Link): Promise<Artifact>
  /**
   * Keeps bytes of the gateway's own, to which no link leads. Gives the name by which `readPrivate` finds them, or
   * undefined if they, or those of this account, would take more than their share of the room.
   */
  keepPrivate(bytes: Uint8Array, accountId: string, expiresAt: number): Promise<string | undefined>
  /** Undefined where the bytes are no longer kept, or are on another node's disk. */
  readPrivate(name: string): Promise<Uint8Array | undefined>
  close(): Promise<void>
}

export type About = {
  /** As the vendor declares it. */
  readonly mediaType: string
  /** The owner, for the log only: anyone who has the link may read the result. */
  readonly accountId: string
  /** Aborts when the client no longer waits for the link. */
  readonly signal?: AbortSignal
}

export type Kept = {
  readonly url: string
  /** Unix milliseconds, on a whole second. */
  readonly expiresAt: number
}

export type Artifact = Stored & { readonly mediaType: string; readonly expiresAt: number }

export type ArtifactParts = {
  readonly settings: FileSettings['artifacts']
  readonly dataFolder: string
  /** Where customers reach the gateway. */
  readonly publicUrl: string
  readonly mac: Mac
  readonly clock: Clock
  readonly timers: Timers
  readonly log: Log
}

const hourMs = 60 * 60 * 1000
// One part in this many of the room is for such private bytes. The rest is for results that need a link, because those
// cost the vendor's price whether there is room for them or not.
const ownPart = 8

export function openArtifacts(parts: ArtifactParts): Artifacts {
  const { settings, clock, log } = parts
  const store = openArtifactStore(parts, join(parts.dataFolder, 'artifacts'))
  const links = makeLinks(parts.mac, parts.publicUrl)
  const stopSweeper = startSweeper({ ...parts, store })
  const ownShare = new Share(settings.bytesMax / ownPart)

  return {
    keepsAll: settings.keep,

    async keep(result, { mediaType, accountId, signal }) {
      const id = newArtifactId(mediaType)
      const expiresAt = Math.floor((clock.now() + settings.hours * hourMs) / 1000) * 1000
      const bytes = await put(id, expiresAt, result, signal)
      log.info({ artifact: id, account: accountId, bytes }, 'a result was kept')
      return { url: links.write(id, expiresAt), expiresAt }
    },

    async find(link) {
      const expiresAt = links.check(link, clock.now())
      const mediaType = mediaTypeOf(link.id)
      const stored = mediaType === undefined ? undefined : await look(nameOf(link.id, expiresAt))
      if (mediaType === undefined || stored === undefined) {
        throw new GatewayError('not-found', 'This result is no longer kept.', { code: 'artifact_not_found' })
      }
      return { ...stored, mediaType, expiresAt }
    },

    async keepPrivate(bytes, accountId, expiresAt) {
      const taken = ownShare.take(bytes.length, accountId, expiresAt, clock.now())
      if (taken === undefined) return undefined
      const id = newArtifactId('application/octet-stream')
      try {
        await put(id, expiresAt, bytes)
      } catch (thrown) {
        ownShare.giveBack(taken)
        throw thrown
      }
      return nameOf(id, expiresAt)
    },

    async readPrivate(name) {
      const stored = await look(name)
      if (stored === undefined) return undefined
      return new Response(await stored.read(0, stored.bytes)).bytes()
    },

    close: stopSweeper,
  }

  function put(id: string, expiresAt: number, result: Result, signal?: AbortSignal): Promise<number> {
    return store.put(nameOf(id, expiresAt), result, mediaTypeOf(id) ?? '', signal).catch(complain)
  }

  function look(name: string): Promise<Stored | undefined> {
    return store.find(name).catch(complain)
  }

  /** Logs the cause for the operator, because the error that the client gets does not name it. */
  function complain(thrown: unknown): never {
    const isOurs = thrown instanceof NoRoom || thrown instanceof StoreUnreachable
    if (isOurs) log.warn({ cause: reasonOf(thrown) }, thrown.message)
    throw thrown
  }
}

function openArtifactStore({ settings, timers }: ArtifactParts, folder: string): ArtifactStore {
  const { bytesMax, s3 } = settings
  return s3 === undefined ? openDiskStore({ folder, bytesMax }) : openBucketStore(s3, { folder, bytesMax, timers })
}
