/** The part of a socket that writes: gives how many bytes it has taken, or less than 0 if it is closed. */
type Writer = { write(bytes: Uint8Array): number }

/** What goes out over a socket. Bytes that the system does not take at once wait here. */
export class Outflow {
  readonly #socket: Writer
  #unsent: Uint8Array[] = []
  #whenSent: (() => void) | undefined

  constructor(socket: Writer) {
    this.#socket = socket
  }

  get isEmpty(): boolean {
    return this.#unsent.length === 0
  }

  /** False where the bytes, or some of them, wait for the client to read. */
  write(bytes: Uint8Array): boolean {
    if (this.#unsent.length > 0) {
      this.#unsent.push(bytes)
      return false
    }
    const written = Math.max(0, this.#socket.write(bytes))
    if (written === bytes.length) return true
    this.#unsent.push(written === 0 ? bytes : bytes.subarray(written))
    return false
  }

  /** The system has room again. True where nothing waits any more and nobody had asked to be told of it. */
  drain(): boolean {
    for (let next = this.#unsent[0]; next !== undefined; next = this.#unsent[0]) {
      const written = Math.max(0, this.#socket.write(next))
      if (written < next.length) {
        this.#unsent[0] = next.subarray(written)
        return false
      }
      this.#unsent.shift()
    }
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
    this.#unsent = []
    this.#whenSent = undefined
  }
}
