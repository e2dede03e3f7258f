import { seeded, seededId } from './seeded.ts'

const lettersMax = 16

/** Writes a field of meaningless letters, each time of another length, with which OpenAI hides that of its chunks. */
export function paddingBy(seed: number): () => string {
  const random = seeded(seed)
  const letters = seededId('', seed)
  return () => `,"obfuscation":"${letters.slice(0, 1 + Math.floor(random() * lettersMax))}"`
}
