import { createHmac } from 'node:crypto'

/** How long vendors keep results. */
export const linkSeconds = 24 * 60 * 60

// The key need not be secret here, and a fixed one gives the same link for the same file and moment.
const signer = 'sandbox-links'

/** A link as object stores sign it: anyone who has it may read the file without a key until it expires. */
export function signLink(address: string, expiresAtSeconds: number): string {
  const url = new URL(address)
  url.searchParams.set('Expires', String(expiresAtSeconds))
  url.searchParams.set('OSSAccessKeyId', 'LTAIsandbox')
  url.searchParams.set('Signature', signatureOf(url))
  return url.href
}

/** The object store's refusal of a link that was changed or has expired; undefined for a valid link. */
export function refuseLink(link: string, nowMs: number): Response | undefined {
  const url = new URL(link)
  const expires = Number(url.searchParams.get('Expires'))
  if (url.searchParams.get('Signature') !== signatureOf(url)) {
    const message = 'The request signature we calculated does not match the signature you provided.'
    return refusal('SignatureDoesNotMatch', message)
  }
  return nowMs >= expires * 1_000 ? refusal('AccessDenied', 'Request has expired.') : undefined
}

/** Signs path and expiry but not the host, because the simulator may be reached under several names. */
function signatureOf(url: URL): string {
  const signed = `${url.pathname}\n${url.searchParams.get('Expires') ?? ''}`
  return createHmac('sha1', signer).update(signed).digest('base64')
}

function refusal(code: string, message: string): Response {
  const body = `<?xml version="1.0" encoding="UTF-8"?>\n<Error>\n  <Code>${code}</Code>\n  <Message>${message}</Message>\n</Error>\n`
  return new Response(body, { status: 403, headers: { 'content-type': 'application/xml' } })
}
