const decoder = new TextDecoder()

/** Decodes what a vendor sent. Invalid UTF-8 becomes U+FFFD instead of throwing. */
export function decodeUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes)
}
