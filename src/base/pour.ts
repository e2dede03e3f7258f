import { asGatewayError, type GatewayError } from './errors.ts'

/** Where something is poured: it takes what comes as it comes, and is told, once, that this was all. */
export type Outlet<Failure = GatewayError> = {
  take(bytes: Uint8Array): void
  /** `failure`: what came in the way of a proper end. Nobody hears of what this throws. */
  end(failure?: Failure): void
}

/**
 * What can be poured. By callbacks and not by promises: there are thousands of events a second, and each would pay for
 * half a dozen of them.
 */
export type Source = {
  /** What has come, and what comes, goes to the outlet, until it is held or poured elsewhere. */
  pour(outlet: Outlet): void
  /** The outlet has no room: what comes waits, and in the end whoever sends it. */
  hold(): void
}

/** Pours what is made step by step. The next step is taken only while somebody takes what it makes. */
export class Pump implements Source {
  readonly #next: () => Promise<Uint8Array | undefined>
  #outlet: Outlet | undefined
  #isPumping = false
  /** Made while nobody took it. */
  #kept: Uint8Array | undefined

  /** `next` gives undefined at the end, and throws where that is not a proper one; and does so again if it is asked again. */
  constructor(next: () => Promise<Uint8Array | undefined>) {
    this.#next = next
  }

  pour(outlet: Outlet): void {
    this.#outlet = outlet
    if (!this.#isPumping) void this.#run()
  }

  hold(): void {
    this.#outlet = undefined
  }

  async #run(): Promise<void> {
    this.#isPumping = true
    try {
      while (this.#outlet !== undefined) {
        const bytes = this.#kept ?? (await this.#next())
        if (bytes === undefined) return this.#end()
        this.#kept = this.#outlet === undefined ? bytes : undefined
        this.#outlet?.take(bytes)
      }
    } catch (thrown) {
      this.#end(asGatewayError(thrown))
    } finally {
      this.#isPumping = false
    }
  }

  #end(failure?: GatewayError): void {
    const outlet = this.#outlet
    this.#outlet = undefined
    outlet?.end(failure)
  }
}
