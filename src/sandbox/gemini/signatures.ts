import { createHmac } from 'node:crypto'
import { isFields } from '../fields.ts'

/**
 * Thought signatures, which only their maker can read. One made for a function call covers its name and arguments, so
 * that a call whose arguments were changed on the way is detected. One made for a text covers nothing else, because
 * clients join and split texts freely.
 */
export type Signed =
  | { readonly kind: 'text' }
  | { readonly kind: 'call'; readonly name: string; readonly args: unknown }

// Only simulates that clients cannot make signatures; nothing depends on its secrecy.
const secret = 'sandbox thought signatures'

/** The values that the vendor documents for histories from other models. */
const skipping: ReadonlySet<string> = new Set([
  'skip_thought_signature_validator',
  'context_engineering_is_the_way_to_go',
])

const nonceBytes = 4
const macBytes = 24

export function sign(signed: Signed, seed: number): string {
  const nonce = Buffer.alloc(nonceBytes)
  nonce.writeUInt32BE(seed >>> 0)
  return Buffer.concat([nonce, mac(signed, nonce)]).toString('base64')
}

export function isGenuine(signature: string, signed: Signed): boolean {
  if (skipping.has(signature)) return true
  const given = Buffer.from(signature, 'base64')
  const nonce = given.subarray(0, nonceBytes)
  return given.length === nonceBytes + macBytes && mac(signed, nonce).equals(given.subarray(nonceBytes))
}

function mac(signed: Signed, nonce: Uint8Array): Buffer {
  const content = signed.kind === 'text' ? 'text' : `call\n${signed.name}\n${canonical(signed.args ?? {})}`
  return createHmac('sha256', secret).update(nonce).update(content).digest().subarray(0, macBytes)
}

/** The same text for the same value, in whatever order a client puts the keys. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, item: unknown) =>
    isFields(item) ? Object.fromEntries(Object.entries(item).toSorted(([a], [b]) => (a < b ? -1 : 1))) : item,
  )
}
