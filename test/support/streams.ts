/** The payloads of all events of a stream, `[DONE]` included. */
export async function payloadsOf(response: Response): Promise<string[]> {
  return payloads(await response.text())
}

export function payloads(text: string): string[] {
  return text
    .split(/\r\n\r\n|\n\n/)
    .filter((event) => event !== '')
    .map((event) =>
      event
        .split(/\r?\n/)
        .filter((line) => line.startsWith('data:'))
        .map((line) => line.slice(5).trimStart())
        .join('\n'),
    )
}

type Chunk = { choices?: { delta?: { content?: string | null } }[] }

/** The text that a stream's events carry together. */
export function contentOf(events: readonly string[]): string {
  return events
    .filter((event) => event.startsWith('{'))
    .flatMap((event) => (JSON.parse(event) as Chunk).choices ?? [])
    .map((choice) => choice.delta?.content ?? '')
    .join('')
}

export type ErrorBody = {
  error: { message: string; type: string; param: string | null; code: string | null }
}

export async function errorOf(response: Response): Promise<ErrorBody['error'] & { status: number }> {
  const { error } = (await response.json()) as ErrorBody
  return { status: response.status, ...error }
}

/** A chat body with one user message. */
export function says(text: string, more: Record<string, unknown> = {}) {
  return { model: 'gpt-4o-mini', messages: [{ role: 'user', content: text }], ...more }
}
