import { chatProtocol } from './chat/routes.ts'
import { dashscopeProtocol } from './dashscope/routes.ts'
import { cohereProtocol } from './embeddings/cohere.ts'
import { embeddingsProtocol } from './embeddings/common.ts'
import { voyageProtocol } from './embeddings/voyage.ts'
import { resultsProtocol } from './files/results.ts'
import { geminiProtocol } from './gemini/routes.ts'
import { imagesProtocol } from './images/routes.ts'
import { messagesProtocol } from './messages/routes.ts'
import type { Protocol } from './protocol.ts'
import { seedreamProtocol } from './seedream/routes.ts'
import { elevenlabsProtocol } from './speech/elevenlabs.ts'
import { minimaxProtocol } from './speech/minimax.ts'
import { speechProtocol } from './speech/speak.ts'
import { arkVideoProtocol } from './video-ark/routes.ts'
import { dashscopeVideoProtocol } from './video-dashscope/routes.ts'
import { klingProtocol } from './video-kling/routes.ts'
import { veoProtocol } from './video-veo/routes.ts'

/** Where a vendor's protocols live under its prefix, and what its official SDK calls the base address. */
export type VendorLayout = {
  readonly base: string
  readonly mounts: readonly { readonly root: string; readonly protocol: Protocol }[]
}

const mount = (root: string, ...protocols: readonly Protocol[]): VendorLayout['mounts'] =>
  protocols.map((protocol) => ({ root, protocol }))

const usual: VendorLayout = {
  base: '/v1',
  mounts: [
    ...mount('/v1', chatProtocol, embeddingsProtocol, imagesProtocol, speechProtocol),
    ...mount('', resultsProtocol),
  ],
}

/** The vendors that differ from the usual. A further protocol of a vendor is a further mount. */
const layouts: Readonly<Record<string, VendorLayout>> = {
  anthropic: { base: '', mounts: [{ root: '/v1', protocol: messagesProtocol }] },
  dashscope: {
    base: '',
    mounts: [
      ...mount('/compatible-mode/v1', chatProtocol, embeddingsProtocol),
      ...mount('/api/v1', dashscopeProtocol, dashscopeVideoProtocol),
      ...mount('', resultsProtocol),
    ],
  },
  google: {
    base: '',
    mounts: [
      ...mount('/v1beta', geminiProtocol, veoProtocol),
      ...mount('/v1beta/openai', chatProtocol, embeddingsProtocol),
    ],
  },
  ark: {
    base: '/api/v3',
    mounts: [
      ...mount('/api/v3', chatProtocol, embeddingsProtocol, seedreamProtocol, arkVideoProtocol),
      ...mount('', resultsProtocol),
    ],
  },
  minimax: { ...usual, mounts: [...usual.mounts, ...mount('/v1', minimaxProtocol)] },
  elevenlabs: { base: '', mounts: mount('/v1', elevenlabsProtocol) },
  voyage: { base: '/v1', mounts: mount('/v1', voyageProtocol) },
  cohere: {
    base: '',
    mounts: [...mount('/v2', cohereProtocol), ...mount('/compatibility/v1', chatProtocol, embeddingsProtocol)],
  },
  kling: { base: '', mounts: [{ root: '/v1/videos', protocol: klingProtocol }] },
}

export function layoutOf(vendor: string): VendorLayout {
  return layouts[vendor] ?? usual
}
