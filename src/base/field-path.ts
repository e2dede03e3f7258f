/** `messages[0].content`: where a value stands in a body or a file, as the common protocol writes its `param`. */
export function writeFieldPath(path: readonly PropertyKey[]): string {
  let text = ''
  for (const step of path) text += typeof step === 'number' ? `[${step}]` : `${text === '' ? '' : '.'}${String(step)}`
  return text
}
