/** A function, so that it is called only where needed: few requests want to know who sent them. */
export type Address = () => string

/** What the server knows of one request beyond the request itself. */
export type Connection = {
  /** The peer's address as the socket has it; forwarding headers are read elsewhere, only behind a trusted proxy. */
  address(): string
  headerCount(): number
  /** Call once the body is complete: from then on our own timers guard the exchange, and a quiet stream is not cut. */
  holdOpen(): void
  /** Call where we also watch the client read the response: the connection is then held open beyond `handOver`. */
  follow(): void
  /**
   * Call before the last part of a response is handed over: from then on the server's timeout guards the rest of it,
   * and the connection when it is kept alive. `bytes`: how much the client has to read.
   */
  letGo(bytes?: number): void
  /** Call when the response is ready and goes to the server. */
  handOver(): void
  /** How many sent bytes the client has not acknowledged, as of `ageMsMax` ago at most; undefined where unknown. */
  unreadBytes(ageMsMax: number): Promise<number | undefined>
}
