/** Apart from the log itself, whose writer takes a while to load: commands print, and write no log. */

// Keys of ours and of the vendors, webhook secrets and passwords in database addresses.
const secretPattern =
  /\b(?:sk|adm|mtr)[-_][A-Za-z0-9_-]{8,}|\bwhsec_[A-Za-z0-9+/=_-]{8,}|(?<=:\/\/[^:@/\s]{0,64}:)[^@/\s]+(?=@)/g

/** Any text that goes to a log or a client, without what looks like a secret. */
export function scrub(text: string): string {
  return text.replace(secretPattern, '[redacted]')
}

// Local servers are given a word for a key; a word is no secret, and every sentence may hold it.
const keyCharactersMin = 8

// Vendors name the account they were asked by: OpenAI its organization, xAI the team and the key's id.
const accountPattern = /\b(?:org|proj)[-_][A-Za-z0-9]{16,}|(?<=\b(?:Team|API key ID): )[\w-]+/g

/**
 * A vendor's words without what no answer may name: the key we use there, whose it is, the vendor's address, and whatever
 * looks like a secret.
 */
export function withoutSecrets(text: string, { baseUrl, credential }: { baseUrl: string; credential: string }): string {
  const hidden = withoutKey(text, credential).replaceAll(new URL(baseUrl).host, '[redacted]')
  return scrub(hidden.replace(accountPattern, '[redacted]'))
}

/** For what is shown as the vendor wrote it, but for the key we use there. */
export function withoutKey(text: string, credential: string): string {
  return credential.length < keyCharactersMin ? text : text.replaceAll(credential, '[redacted]')
}
