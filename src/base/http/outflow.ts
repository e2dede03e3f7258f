import type { Bytes } from '../spliced.ts'
import { chunkOf, chunkRoom, frameChunk } from './chunk.ts'

/** The part of a socket that writes: gives how many bytes it has taken, or less than 0 if it is closed. */
type Writer = { write(bytes: Uint8Array, from?: number, length?: number): number }

// Nearly every chunk is made here, taken by the system at once, and forgotten. Larger ones, which are few, get their
// own memory: what is copied here should stay in the core's cache.
const workbench = Buffer.allocUnsafeSlow(16 * 1024)

/** What goes out over a socket. Bytes that the system does not take at once wait here. */
export class Outflow {
  readonly #socket: Writer
  /** Undefined while nothing waits: each further object that an event of a stream touches is a cache miss. */
  #unsent: Uint8Array[] | undefined
  #whenSent: (() => void) | undefined

  constructor(socket: Writer) {
    this.#socket = socket
  }

  get isEmpty(): boolean {
    return this.#unsent === undefined
  }

  /** False where the bytes, or some of them, wait for the client to read. */
  write(bytes: Uint8Array): boolean {
    if (this.#unsent !== undefined) {
      this.#unsent.push(bytes)
      return false
    }
    const written = Math.max(0, this.#socket.write(bytes))
    if (written === bytes.length) return true
    this.#unsent = [written === 0 ? bytes : bytes.subarray(written)]
    return false
  }

  /** Writes the bytes as one chunk of a body. */
  writeChunk(bytes: Bytes): boolean {
    const isSmall = bytes.length + chunkRoom <= workbench.length
    if (this.#unsent !== undefined || !isSmall) return this.write(chunkOf(bytes))
    const length = frameChunk(bytes, workbench)
    const written = Math.max(0, this.#socket.write(workbench, 0, length))
    if (written === length) return true
    this.#unsent = [Buffer.from(workbench.subarray(written, length))] // a copy: the next chunk is made there
    return false
  }

  /** The system has room again. True where nothing waits any more and nobody had asked to be told of it. */
  drain(): boolean {
    if (!this.#sendUnsent()) return false
    const then = this.#whenSent
    this.#whenSent = undefined
    then?.()
    return then === undefined
  }

  /** Calls `then` once nothing waits any more: at once, or when the client has read. */
  whenSent(then: () => void): void {
    if (this.isEmpty) then()
    else this.#whenSent = then
  }

  /** The socket is closed: what waits can never be sent. */
  drop(): void {
    this.#unsent = undefined
    this.#whenSent = undefined
  }

  /** Says whether all of it is sent. */
  #sendUnsent(): boolean {
    const unsent = this.#unsent ?? []
    for (let next = unsent[0]; next !== undefined; next = unsent[0]) {
      const written = Math.max(0, this.#socket.write(next))
      if (written < next.length) {
        unsent[0] = next.subarray(written)
        return false
      }
      unsent.shift()
    }
    this.#unsent = undefined
    return true
  }
}
