import { chatProtocol } from './chat/routes.ts'
import { geminiProtocol } from './gemini/routes.ts'
import { messagesProtocol } from './messages/routes.ts'
import type { Protocol } from './protocol.ts'

/** Where a vendor's protocols live under its prefix, and what its official SDK calls the base address. */
export type VendorLayout = {
  readonly base: string
  readonly mounts: readonly { readonly root: string; readonly protocol: Protocol }[]
}

const usual: VendorLayout = { base: '/v1', mounts: [{ root: '/v1', protocol: chatProtocol }] }

/** The vendors that differ from the usual. A further protocol of a vendor is a further mount. */
const layouts: Readonly<Record<string, VendorLayout>> = {
  anthropic: { base: '', mounts: [{ root: '/v1', protocol: messagesProtocol }] },
  dashscope: { base: '', mounts: [{ root: '/compatible-mode/v1', protocol: chatProtocol }] },
  google: {
    base: '/v1beta',
    mounts: [
      { root: '/v1beta', protocol: geminiProtocol },
      { root: '/v1beta/openai', protocol: chatProtocol },
    ],
  },
  ark: { base: '/api/v3', mounts: [{ root: '/api/v3', protocol: chatProtocol }] },
}

export function layoutOf(vendor: string): VendorLayout {
  return layouts[vendor] ?? usual
}
