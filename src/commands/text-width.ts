/** How many columns of a terminal a text takes: two for each character of East Asia and emoji, none for an accent. */
export function widthOf(text: string): number {
  return Bun.stringWidth(text)
}
