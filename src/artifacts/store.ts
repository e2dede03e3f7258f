import { GatewayError } from '../base/errors.ts'

/** What a vendor made: in one piece, or as it comes. */
export type Result = Uint8Array | ReadableStream<Uint8Array>

export type Stored = {
  readonly bytes: number
  /** The bytes from one place to before another, as the body of a response. */
  read(from: number, to: number): Promise<Blob | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>>
}

/** Where results lie. A name is an hour and an id, see `names.ts`. */
export type ArtifactStore = {
  /**
   * All of it or nothing: a name that can be found leads to the whole result. Gives how many bytes it was. `signal` aborts where
   * nobody waits for it any longer.
   */
  put(name: string, result: Result, mediaType: string, signal?: AbortSignal): Promise<number>
  find(name: string): Promise<Stored | undefined>
  /** Deletes what expired before the hour, at most so many at a time, the oldest first. Where `signal` aborts it need not end. */
  sweep(beforeHour: string, countMax: number, signal?: AbortSignal): Promise<'done' | 'more'>
}

const retrySeconds = 60

/** The bound of the settings, or the disk itself. Whoever reads the log learns which. */
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

/** What the operator has to know of a failure, of which clients are told little. */
export function reasonOf(thrown: unknown): string {
  return String((thrown instanceof GatewayError && thrown.details.cause) || thrown)
}
