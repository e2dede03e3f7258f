/** The vendor does not speak HTTP/1.1, or not so that all would read it alike. */
export class Garbled extends Error {
  constructor(what: string) {
    super(`not an HTTP/1.1 response: ${what}`)
    this.name = 'Garbled'
  }
}
