/** The voices of both Qwen3-TTS models. Some names hold a space, and case matters. */
// prettier-ignore
const shared = new Set([
  'Cherry', 'Serena', 'Ethan', 'Chelsie', 'Momo', 'Vivian', 'Moon', 'Maia', 'Kai', 'Nofish', 'Bella', 'Eldric Sage',
  'Mia', 'Mochi', 'Bellona', 'Vincent', 'Bunny', 'Neil', 'Elias', 'Arthur', 'Nini', 'Seren', 'Pip', 'Stella',
])

// prettier-ignore
const flashOnly = new Set([
  'Jennifer', 'Ryan', 'Katerina', 'Aiden', 'Bodega', 'Sonrisa', 'Alek', 'Dolce', 'Sohee', 'Ono Anna', 'Lenn',
  'Emilien', 'Andre', 'Radio Gol', 'Jada', 'Dylan', 'Li', 'Marcus', 'Roy', 'Peter', 'Sunny', 'Eric', 'Rocky', 'Kiki',
])

/** The voices of other models are not listed here, so any name is accepted. */
export function hasVoice(model: string, voice: string): boolean {
  if (!model.startsWith('qwen3-tts')) return voice !== ''
  return shared.has(voice) || (!model.includes('instruct') && flashOnly.has(voice))
}
