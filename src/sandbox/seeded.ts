/** A sequence of numbers in [0, 1) that depends only on its seed (mulberry32). */
export type Seeded = () => number

export function seeded(seed: number): Seeded {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/** FNV-1a over UTF-16 units, continued from the hash `from`. */
export function hashText(text: string, from = 0x811c9dc5): number {
  let hash = from
  for (let index = 0; index < text.length; index += 1) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return hash >>> 0
}

export function pick<T>(random: Seeded, items: readonly [T, ...T[]]): T {
  return items[Math.floor(random() * items.length)] ?? items[0]
}

const idLetters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** Hexadecimal digits. */
export function hexDigits(random: Seeded, count: number): string {
  return Array.from({ length: count }, () => Math.floor(random() * 16).toString(16)).join('')
}

/** An id in the vendors' style, the same for the same seed. */
export function seededId(prefix: string, seed: number): string {
  const random = seeded(seed)
  let id = prefix
  for (let index = 0; index < 24; index += 1) id += idLetters[Math.floor(random() * idLetters.length)]
  return id
}
