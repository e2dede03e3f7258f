/** A function, so that it is called only where needed: few requests want to know who sent them. */
export type Address = () => string

/** What the server knows of one request beyond the request itself. */
export type Connection = {
  /** The peer's address as the socket has it; forwarding headers are read elsewhere, only behind a trusted proxy. */
  address(): string
  headerCount(): number
  /** Call for a response that may be quiet, where other timers watch the client read it. */
  follow(): void
  /** Call before the last part of such a response: from then on the server watches. `bytes`: how much is to be read. */
  letGo(bytes?: number): void
  /** How many sent bytes the client has not acknowledged, as of `ageMsMax` ago at most; undefined where unknown. */
  unreadBytes(ageMsMax: number): Promise<number | undefined>
}
