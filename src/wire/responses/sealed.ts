import type { AssistantBlock } from '../../capabilities/conversation.ts'
import { objectWrittenIn, textIn } from '../loose.ts'

/**
 * What only its vendor takes back: thinking with its signature, redacted thinking, or the signature of a call. The
 * protocol has one field for this, `encrypted_content`, which clients store and send back unread. It is encoded here,
 * not encrypted, because the client may know what it holds.
 */
export type Sealed =
  | { readonly kind: 'thought'; readonly text: string; readonly signature?: string }
  | { readonly kind: 'redacted'; readonly data: string }
  | { readonly kind: 'call'; readonly signature: string }

// Tells our encoding from that of another gateway or of the protocol's own vendor.
const mark = 'tpk_'

export function seal(sealed: Sealed): string {
  return mark + Buffer.from(JSON.stringify(sealed)).toString('base64url')
}

/** Whether the content is in our encoding; it may still be damaged. */
export function isMarked(content: string): boolean {
  return content.startsWith(mark)
}

/** Undefined for content that is not ours: only its maker can read it. */
export function unseal(content: string): Sealed | undefined {
  if (!isMarked(content)) return undefined
  const written = objectWrittenIn(Buffer.from(content.slice(mark.length), 'base64url').toString()) ?? {}
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

/** The conversation's block for sealed thinking. */
export function thinkingBlockOf(sealed: Exclude<Sealed, { kind: 'call' }>): AssistantBlock {
  if (sealed.kind === 'redacted') return { kind: 'thinking-redacted', data: sealed.data }
  const { text, signature } = sealed
  return { kind: 'thinking', text, ...(signature !== undefined && { signature }) }
}
