/** Rewords zod's messages for YAML, where undefined is a missing line, and null a name with no value after it. */
export function inPlainWords(message: string): string {
  for (const [zods, ours] of wordings) if (zods.test(message)) return message.replace(zods, ours)
  return message
}

const wordings: readonly (readonly [RegExp, string])[] = [
  [/^.*received undefined$/, 'is missing'],
  [/^.*received null$/, 'has no value: write one, or remove the line'],
  [/^Invalid input: expected boolean, .*$/, 'must be true or false, without quotes'],
  [/^Invalid input: expected number, received string$/, 'must be a number, without quotes, units or separators'],
  [/^Invalid input: expected number, .*$/, 'must be a number'],
  [/^Invalid input: expected int, .*$/, 'must be a whole number'],
  [/^Invalid input: expected string, received (?:number|boolean)$/, 'must be a text: write it in quotes'],
  [/^Invalid input: expected string, .*$/, 'must be a text'],
  [/^Invalid input: expected array, .*$/, 'must be a list, such as [one, two]'],
  [/^Invalid input: expected (?:object|record), .*$/, 'must be names with values, such as { name: value }'],
  [/^Too big: expected (?:number|int) to be <=(.+)$/, 'must be at most $1'],
  [/^Too small: expected (?:number|int) to be >=(.+)$/, 'must be at least $1'],
  [/^Too small: expected number to be >(.+)$/, 'must be more than $1'],
  [/^Too small: expected (?:string|array) to have >=1 .*$/, 'must not be empty'],
]
