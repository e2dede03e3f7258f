import * as z from 'zod'

/** What zod is to say of a YAML file: an operator's words, where there are better ones than its own. */
export const plainWords: z.core.ParseContext<z.core.$ZodIssue> = {
  error(issue) {
    if (issue.code === 'invalid_type') return absent(issue.input) ?? wrongType(issue.expected, issue.input)
    if (issue.code === 'invalid_value') return absent(issue.input) ?? `must be one of ${issue.values.join(', ')}`
    if (issue.code === 'unrecognized_keys') return `no such setting${namesIn(issue.inst)}`
    if (issue.code === 'too_big' && isNumeric(issue)) return `must be at most ${issue.maximum}`
    if (issue.code !== 'too_small') return undefined
    if (isNumeric(issue)) return `must be ${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}`
    return issue.minimum === 1 ? 'must not be empty' : undefined
  },
}

/** A mistyped name is mended by reading the right ones; which of them was meant need not be guessed. */
function namesIn(object: unknown): string {
  if (!(object instanceof z.core.$ZodObject)) return ''
  return `; known here: ${Object.keys(object._zod.def.shape).join(', ')}`
}

/** In YAML, undefined is a missing line, and null a name with no value after it. */
function absent(input: unknown): string | undefined {
  if (input === undefined) return 'is missing'
  return input === null ? 'has no value: write one, or remove the line' : undefined
}

function wrongType(expected: string, input: unknown): string | undefined {
  switch (expected) {
    case 'boolean':
      return 'must be true or false, without quotes'
    case 'number':
      return typeof input === 'string' ? 'must be a number, without quotes, units or separators' : 'must be a number'
    case 'int':
      return 'must be a whole number'
    case 'string':
      return typeof input === 'object' ? 'must be a text' : 'must be a text: write it in quotes'
    case 'array':
      return 'must be a list, such as [one, two]'
    case 'object':
    case 'record':
      return 'must be names with values, such as { name: value }'
    default:
      return undefined
  }
}

function isNumeric({ origin }: { readonly origin: string }): boolean {
  return origin === 'number' || origin === 'int'
}
