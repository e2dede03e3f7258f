/** Writes the path to a value in a body or a file as the common protocol writes `param`: `messages[0].content`. */
export function writeFieldPath(path: readonly PropertyKey[]): string {
  let text = ''
  for (const step of path) text += typeof step === 'number' ? `[${step}]` : `${text === '' ? '' : '.'}${String(step)}`
  return text
}
