/** Separate from `log.ts` because commands need this, but write no log and should not wait for pino to load. */

// Our keys and the vendors', webhook secrets, and passwords in database addresses.
const secretPattern =
  /\b(?:sk|adm|mtr)[-_][A-Za-z0-9_-]{8,}|\bwhsec_[A-Za-z0-9+/=_-]{8,}|(?<=:\/\/[^:@/\s]{0,64}:)[^@/\s]+(?=@)/g

/** Redacts everything that looks like a secret in a text for a log or a client. */
export function scrub(text: string): string {
  return text.replace(secretPattern, '[redacted]')
}

// Local servers are often given a plain word as their key, which is no secret and may occur in any sentence.
const keyCharactersMin = 8

// Vendors' messages name the account that called: OpenAI its organization, xAI the team and the key's id.
const accountPattern = /\b(?:org|proj)[-_][A-Za-z0-9]{16,}|(?<=\b(?:Team|API key ID): )[\w-]+/g

/**
 * Redacts in a vendor's message what no answer may name: our key at the vendor, the account it belongs to, the vendor's
 * address, and everything that looks like a secret.
 */
export function withoutSecrets(text: string, { baseUrl, credential }: { baseUrl: string; credential: string }): string {
  const hidden = withoutKey(text, credential).replaceAll(new URL(baseUrl).host, '[redacted]')
  return scrub(hidden.replace(accountPattern, '[redacted]'))
}

/** Redacts only our key at the vendor, for texts that are otherwise shown as the vendor wrote them. */
export function withoutKey(text: string, credential: string): string {
  return credential.length < keyCharactersMin ? text : text.replaceAll(credential, '[redacted]')
}
