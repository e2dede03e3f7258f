import { GatewayError } from '../base/errors.ts'
import { unixSeconds } from '../base/moment.ts'
import { sameBytes, type Mac } from '../base/secret.ts'

/** The parts of a requested link, not checked yet. */
export type Link = { readonly id: string; readonly expires: string | null; readonly signature: string | null }

export type Links = {
  /** The signature is the credential: anyone who has the link can read the result until it expires. */
  write(id: string, expiresAt: number): string
  /** When a valid link expires, in unix milliseconds. Throws for any other link. */
  check(link: Link, now: number): number
}

/** A link carries its expiry and is signed together with it, so that refusing one needs no lookup. */
export function makeLinks(mac: Mac, publicUrl: string): Links {
  const sign = (id: string, expires: string) => mac(`${id}\n${expires}`).toString('base64url')
  return {
    write(id, expiresAt) {
      const expires = String(unixSeconds(expiresAt))
      return `${publicUrl}/artifacts/${id}?expires=${expires}&signature=${sign(id, expires)}`
    },
    check({ id, expires, signature }, now) {
      // The encoded texts are compared rather than the decoded bytes, so that a signature has only one valid spelling.
      const good = expires !== null && signature !== null && sameBytes(utf8(sign(id, expires)), utf8(signature))
      if (!good) throw refused('invalid_link', 'This link was not made by this gateway, or was changed since.')
      const expiresAt = Number(expires) * 1000
      if (now >= expiresAt) throw refused('link_expired', 'This link has expired.')
      return expiresAt
    },
  }
}

function utf8(text: string): Uint8Array {
  return Buffer.from(text)
}

function refused(code: 'invalid_link' | 'link_expired', message: string): GatewayError {
  return new GatewayError('bad-request', message, { code })
}
