import { sealUnder } from './seal.ts'

/** The storage for answers that are too long for a row. */
export type LongAnswers = {
  /** Undefined where there is no room, or none for more of this account. */
  keepPrivate(bytes: Uint8Array, accountId: string, expiresAt: number): Promise<string | undefined>
  readPrivate(name: string): Promise<Uint8Array | undefined>
}

type Keeper = { readonly accountId: string; readonly key: string }

// Precedes the name of an answer that is stored elsewhere. A sealed text is base64, which has no colon.
const elsewhere = 'artifact:'

/** What the row of an answer has as its body: a sealed text, or the name of sealed bytes that are stored elsewhere. */
export class AnswerBodies {
  readonly #secret: Uint8Array
  readonly #longAnswers: LongAnswers

  constructor(secret: Uint8Array, longAnswers: LongAnswers) {
    this.#secret = secret
    this.#longAnswers = longAnswers
  }

  seal(text: string, { key }: Keeper): string {
    return sealUnder(key, this.#secret).seal(text)
  }

  /** Null where there is no room for the answer: then only the fact is stored that it happened. */
  async storeElsewhere(body: Uint8Array, { accountId, key }: Keeper, expiresAt: number): Promise<string | null> {
    const sealed = await sealUnder(key, this.#secret).sealBytes(body)
    const name = await this.#longAnswers.keepPrivate(sealed, accountId, expiresAt)
    return name === undefined ? null : elsewhere + name
  }

  /** Undefined where the answer is stored at no place that this node can reach. */
  async unseal(sealedBody: string, { key }: Keeper): Promise<Uint8Array | undefined> {
    const seal = sealUnder(key, this.#secret)
    if (!sealedBody.startsWith(elsewhere)) return Buffer.from(seal.unseal(sealedBody))
    const sealed = await this.#longAnswers.readPrivate(sealedBody.slice(elsewhere.length))
    return sealed && seal.unsealBytes(sealed)
  }
}
