/** Where a speaker would pause, best first. Each pattern matches the punctuation mark and the space after it. */
const ends: readonly RegExp[] = [
  // The space is required because a full stop inside a number has none after it; Chinese and Japanese marks need none.
  /\n\s*|(?<![.!?…])[.!?…]+["'”’)\]]*\s+|[。！？｡]+["'”’」』）]*\s*/g,
  /[;:,]\s+|[；：，、]\s*/g,
  /\s+/g,
]

/**
 * Splits a text into pieces of at most `charactersMax` code points, cut after a sentence if possible, otherwise after a
 * clause, after a word, or inside a word. Nothing is dropped: the pieces joined are the text.
 */
export function splitText(text: string, charactersMax: number): string[] {
  const pieces: string[] = []
  let rest = text
  for (;;) {
    const window = startOf(rest, charactersMax)
    if (window.length === rest.length) break
    const cut = cutIn(window, rest)
    pieces.push(rest.slice(0, cut))
    rest = rest.slice(cut)
  }
  if (rest !== '' || pieces.length === 0) pieces.push(rest)
  return mergeSilent(pieces)
}

/** The first `charactersMax` code points. */
function startOf(text: string, charactersMax: number): string {
  if (text.length <= charactersMax) return text
  let end = 0
  for (let count = 0; count < charactersMax && end < text.length; count++) {
    end += (text.codePointAt(end) ?? 0) > 0xffff ? 2 : 1
  }
  return text.slice(0, end)
}

/** The last good place to cut in the window. One character beyond it is looked at too: a mark may need its space. */
function cutIn(window: string, rest: string): number {
  const seen = rest.slice(0, window.length + 1)
  for (const end of ends) {
    let last = 0
    for (const match of seen.matchAll(end)) {
      const at = Math.min(match.index + match[0].length, window.length)
      // A space that no longer fits begins the next piece, which is just as good.
      if (match.index < window.length && window.slice(0, at).trim() !== '') last = at
    }
    if (last > 0) return last
  }
  return window.length
}

/** Joins white space to the piece before it, even beyond the limit, because vendors refuse a text without words. */
function mergeSilent(pieces: readonly string[]): string[] {
  const merged: string[] = []
  for (const piece of pieces) {
    const before = merged.pop()
    if (before === undefined) merged.push(piece)
    else if (piece.trim() === '' || before.trim() === '') merged.push(before + piece)
    else merged.push(before, piece)
  }
  return merged
}
