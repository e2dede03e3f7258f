const decoder = new TextDecoder()

/** What a vendor sent, as text. A byte that is none of UTF-8 becomes the character that says so. */
export function decodeUtf8(bytes: Uint8Array): string {
  return decoder.decode(bytes)
}
