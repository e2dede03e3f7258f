import type { AssistantBlock } from '../../capabilities/conversation.ts'
import { objectIn, parseLoosely, textIn } from '../loose.ts'

/**
 * What only its vendor takes back: a thought with its signature, a thought that nobody may read, or the signature of a call.
 * The protocol has one place for such things, `encrypted_content`, which clients keep and send back unread. It is spelled
 * here, not encrypted: what it says, the client may know.
 */
export type Sealed =
  | { readonly kind: 'thought'; readonly text: string; readonly signature?: string }
  | { readonly kind: 'redacted'; readonly data: string }
  | { readonly kind: 'call'; readonly signature: string }

// Tells what we spelled from what another gateway, or the vendor of this protocol, did.
const mark = 'tpk_'

export function seal(sealed: Sealed): string {
  return mark + Buffer.from(JSON.stringify(sealed)).toString('base64url')
}

/** Undefined for what is not ours: nobody but its maker could take it back. */
export function unseal(content: string): Sealed | undefined {
  if (!content.startsWith(mark)) return undefined
  const written = objectIn(parseLoosely(Buffer.from(content.slice(mark.length), 'base64url').toString()))
  const signature = textIn(written['signature'])
  switch (textIn(written['kind'])) {
    case 'thought':
      return { kind: 'thought', text: textIn(written['text']), ...(signature !== '' && { signature }) }
    case 'redacted':
      return { kind: 'redacted', data: textIn(written['data']) }
    case 'call':
      return signature === '' ? undefined : { kind: 'call', signature }
    default:
      return undefined
  }
}

/** What a sealed thought is in a conversation. */
export function thoughtOf(sealed: Exclude<Sealed, { kind: 'call' }>): AssistantBlock {
  if (sealed.kind === 'redacted') return { kind: 'thinking-redacted', data: sealed.data }
  const { text, signature } = sealed
  return { kind: 'thinking', text, ...(signature !== undefined && { signature }) }
}
