import { GatewayError } from '../base/errors.ts'

/** What a vendor made: in one piece, or as a stream. */
export type Result = Uint8Array | ReadableStream<Uint8Array>

export type Stored = {
  readonly bytes: number
  /** The bytes from `from` up to but not including `to`, as the body of a response. */
  read(from: number, to: number): Promise<Blob | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>>
}

/** Where results are stored. A name is an hour and an id, see `names.ts`. */
export type ArtifactStore = {
  /**
   * Stores all of the result or nothing: a name that can be found leads to the whole result. Gives its size in bytes.
   * `signal` aborts when the caller no longer waits.
   */
  put(name: string, result: Result, mediaType: string, signal?: AbortSignal): Promise<number>
  find(name: string): Promise<Stored | undefined>
  /** Deletes up to `countMax` results that expired before the hour, oldest first. It may stop when `signal` aborts. */
  sweep(beforeHour: string, countMax: number, signal?: AbortSignal): Promise<'done' | 'more'>
}

const retrySeconds = 60

/** Either `bytesMax` or the disk itself is used up; only the log says which. */
export class NoRoom extends GatewayError {
  constructor(why: string) {
    super('overloaded', 'The gateway has no room left to keep results in.', {
      code: 'artifacts_full',
      retryAfterSeconds: retrySeconds,
      cause: why,
    })
    this.name = 'NoRoom'
  }
}

export class StoreUnreachable extends GatewayError {
  constructor(cause: unknown) {
    super('overloaded', 'Kept results cannot be reached at the moment.', {
      code: 'artifacts_unreachable',
      retryAfterSeconds: 1,
      cause,
    })
    this.name = 'StoreUnreachable'
  }
}

/** The cause of a failure for the operator's log; clients are not told it. */
export function reasonOf(thrown: unknown): string {
  return String((thrown instanceof GatewayError && thrown.details.cause) || thrown)
}
