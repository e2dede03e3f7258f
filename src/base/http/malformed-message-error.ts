/** A request or a response is not HTTP/1.1, or two readers could understand it differently. */
export class MalformedMessageError extends Error {
  constructor(what: string) {
    super(`malformed HTTP/1.1: ${what}`)
    this.name = 'MalformedMessageError'
  }
}
