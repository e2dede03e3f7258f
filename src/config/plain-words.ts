/** Rewords zod's messages for YAML, where undefined is a missing line, and null a name with no value after it. */
export function inPlainWords(message: string): string {
  if (message.endsWith('received undefined')) return 'is missing'
  if (message.endsWith('received null')) return 'has no value: write one, or remove the line'
  return message
}
