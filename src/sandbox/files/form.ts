import type { Call } from '../protocol.ts'

/** The call's form, whose text holds one character per byte; undefined if it cannot be read. */
export async function readForm({ request, text }: Call): Promise<FormData | undefined> {
  const headers = { 'content-type': request.headers.get('content-type') ?? '' }
  try {
    return await new Response(Buffer.from(text, 'latin1'), { headers }).formData()
  } catch {
    return undefined
  }
}
