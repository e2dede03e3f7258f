/** YAML has no undefined: what is, was not written. What is null has a name and nothing behind it. */
export function inPlainWords(message: string): string {
  if (message.endsWith('received undefined')) return 'is missing'
  if (message.endsWith('received null')) return 'has no value: write one, or remove the line'
  return message
}
