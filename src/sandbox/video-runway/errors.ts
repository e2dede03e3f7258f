import { Refusal } from '../refusal.ts'

export function invalidField(field: string, why: string): Refusal {
  return new Refusal(400, `Validation of body failed: ${field}: ${why}`)
}

/** A refusal is a sentence in `error`; only the status tells refusals apart. */
const sentences: Readonly<Record<number, string>> = {
  400: 'There is a problem with one of the inputs.',
  401: 'The API key is not valid.',
  402: 'You do not have enough credits to run this task.',
  404: 'The referenced resource is not available.',
  405: 'The method is not supported here.',
  429: 'Too many requests.',
  503: 'Runway is shedding load.',
  504: 'Runway is overloaded.',
}

export function errorForStatus(status: number): Refusal {
  return new Refusal(status, sentences[status] ?? 'An unexpected error occurred.')
}

/** How a task reports its failure: a code for machines, a sentence for people. */
export function failureFor(code: string): { readonly code: string; readonly message: string } {
  const isUnsafe = code.startsWith('SAFETY')
  return { code, message: isUnsafe ? 'The content was held back by moderation.' : 'An unexpected error occurred.' }
}
