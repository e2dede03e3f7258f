import { sealUnder } from './seal.ts'

/** The storage for answers that are too long for a row. */
export type LongAnswers = {
  /** Undefined where there is no room, or none for more of this account. */
  keepPrivate(bytes: Uint8Array, accountId: string, expiresAt: number): Promise<string | undefined>
  readPrivate(name: string): Promise<Uint8Array | undefined>
}

/**
 * What the row of an answer has as its body: a text sealed under the Idempotency-Key, or the name of sealed bytes that
 * are stored elsewhere.
 */
export type AnswerBodies = {
  seal(text: string, key: string): string
  /** Null where there is no room for the answer: then only the fact is stored that it happened. */
  storeElsewhere(body: Uint8Array, key: string, accountId: string, expiresAt: number): Promise<string | null>
  /** Undefined where the answer is stored at no place that this node can reach. */
  unseal(sealedBody: string, key: string): Promise<Uint8Array | undefined>
}

// Precedes the name of an answer that is stored elsewhere. A sealed text is base64, which has no colon.
const elsewhere = 'artifact:'

export function makeAnswerBodies(secret: Uint8Array, longAnswers: LongAnswers): AnswerBodies {
  return {
    seal: (text, key) => sealUnder(key, secret).seal(text),

    async storeElsewhere(body, key, accountId, expiresAt) {
      const sealed = await sealUnder(key, secret).sealBytes(body)
      const name = await longAnswers.keepPrivate(sealed, accountId, expiresAt)
      return name === undefined ? null : elsewhere + name
    },

    async unseal(sealedBody, key) {
      const seal = sealUnder(key, secret)
      if (!sealedBody.startsWith(elsewhere)) return Buffer.from(seal.unseal(sealedBody))
      const sealed = await longAnswers.readPrivate(sealedBody.slice(elsewhere.length))
      return sealed && seal.unsealBytes(sealed)
    },
  }
}
