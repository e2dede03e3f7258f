import type { SandboxModel } from './model.ts'

/**
 * OpenAI's models that accept the effort `none` default to it, except those since gpt-5.6. All others reason at medium.
 */
export function defaultEffort({ model, efforts }: SandboxModel, mayRest = true): string {
  if (mayRest && efforts.includes('none') && !isSince(model, 5, 6)) return 'none'
  return efforts.length === 0 || efforts.includes('medium') ? 'medium' : (efforts[0] ?? 'medium')
}

/** Whether a model belongs to this GPT generation or a later one. */
export function isSince(model: string, major: number, minor: number): boolean {
  const [, ownMajor = '0', ownMinor = '0'] = /^gpt-(\d+)(?:\.(\d+))?/.exec(model) ?? []
  return Number(ownMajor) > major || (Number(ownMajor) === major && Number(ownMinor) >= minor)
}
