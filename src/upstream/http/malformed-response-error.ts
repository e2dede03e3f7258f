/** The vendor's response is not HTTP/1.1, or two readers could understand it differently. */
export class MalformedResponseError extends Error {
  constructor(what: string) {
    super(`not an HTTP/1.1 response: ${what}`)
    this.name = 'MalformedResponseError'
  }
}
