import { asGatewayError, type GatewayError } from './errors.ts'

/** What a source is poured into: takes the bytes as they come, and is told once that the source has ended. */
export type Outlet<Taken = Uint8Array> = {
  // As a property, it has its parameter checked: an outlet for plain arrays alone is none for all `Bytes`.
  readonly take: (bytes: Taken) => void
  /** `failure` says why the source did not end properly. Errors thrown here are lost. */
  end(failure?: GatewayError): void
}

/**
 * A stream of bytes that can be poured. It uses callbacks and not promises, because there are thousands of events a
 * second and each would cost half a dozen promises.
 */
export type Source = {
  /** Sends what has arrived, and what arrives from now on, to the outlet, until it is paused or poured elsewhere. */
  readonly pour: (outlet: Outlet) => void
  /** The outlet has no room: what arrives waits, which in the end holds back the sender. */
  pause(): void
}

/** Pours what a function makes step by step. It takes the next step only while an outlet takes the bytes. */
export class Pump implements Source {
  readonly #next: () => Promise<Uint8Array | undefined>
  #outlet: Outlet | undefined
  #isPumping = false
  /** Made while there was no outlet. */
  #kept: Uint8Array | undefined

  /** `next` gives undefined at a proper end and throws at any other, and does the same when it is called again. */
  constructor(next: () => Promise<Uint8Array | undefined>) {
    this.#next = next
  }

  pour(outlet: Outlet): void {
    this.#outlet = outlet
    if (!this.#isPumping) void this.#run()
  }

  pause(): void {
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
