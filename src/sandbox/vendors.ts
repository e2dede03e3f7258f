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
import { responsesProtocol } from './responses/routes.ts'
import { seedreamProtocol } from './seedream/routes.ts'
import { elevenlabsProtocol } from './speech/elevenlabs.ts'
import { minimaxProtocol } from './speech/minimax.ts'
import { speechProtocol } from './speech/speak.ts'
import { seedanceTasks } from './video-ark/create.ts'
import { arkVideoProtocol } from './video-ark/routes.ts'
import { wanTasks } from './video-dashscope/create.ts'
import { dashscopeVideoProtocol } from './video-dashscope/routes.ts'
import { klingTasks } from './video-kling/create.ts'
import { klingProtocol } from './video-kling/routes.ts'
import { minimaxTasks } from './video-minimax/create.ts'
import { minimaxVideoProtocol } from './video-minimax/routes.ts'
import { pixverseTasks } from './video-pixverse/create.ts'
import { pixverseProtocol } from './video-pixverse/routes.ts'
import { runwayTasks } from './video-runway/create.ts'
import { runwayProtocol } from './video-runway/routes.ts'
import { veoTasks } from './video-veo/create.ts'
import { veoProtocol } from './video-veo/routes.ts'
import { soraTasks } from './video-sora/create.ts'
import { soraProtocol } from './video-sora/routes.ts'
import type { TaskFamily } from './video/tasks.ts'
import { viduTasks } from './video-vidu/create.ts'
import { viduProtocol } from './video-vidu/routes.ts'

type Mounts = readonly { readonly root: string; readonly protocol: Protocol }[]

const mount = (root: string, ...protocols: readonly Protocol[]): Mounts =>
  protocols.map((protocol) => ({ root, protocol }))

const usual: Mounts = [
  ...mount('/v1', chatProtocol, embeddingsProtocol, imagesProtocol, speechProtocol),
  ...mount('', resultsProtocol),
]

/** The vendors that differ from the usual mounts. Each further protocol of a vendor is a further mount. */
const mounts: Readonly<Record<string, Mounts>> = {
  anthropic: mount('/v1', messagesProtocol),
  dashscope: [
    ...mount('/compatible-mode/v1', chatProtocol, embeddingsProtocol),
    ...mount('/api/v1', dashscopeProtocol, dashscopeVideoProtocol),
    ...mount('', resultsProtocol),
  ],
  openai: [...usual, ...mount('/v1', responsesProtocol, soraProtocol)],
  azure: [...usual, ...mount('/v1', responsesProtocol)],
  google: [
    ...mount('/v1beta', geminiProtocol, veoProtocol),
    ...mount('/v1beta/openai', chatProtocol, embeddingsProtocol),
  ],
  ark: [
    ...mount('/api/v3', chatProtocol, embeddingsProtocol, seedreamProtocol, arkVideoProtocol),
    ...mount('', resultsProtocol),
  ],
  minimax: [...usual, ...mount('/v1', minimaxProtocol, minimaxVideoProtocol)],
  elevenlabs: mount('/v1', elevenlabsProtocol),
  voyage: mount('/v1', voyageProtocol),
  cohere: [...mount('/v2', cohereProtocol), ...mount('/compatibility/v1', chatProtocol, embeddingsProtocol)],
  kling: mount('/v1/videos', klingProtocol),
  pixverse: mount('/openapi/v2', pixverseProtocol),
  runway: mount('/v1', runwayProtocol),
  vidu: mount('/ent/v2', viduProtocol),
}

/** Where a vendor's protocols are mounted under its prefix. `bases.ts` has the base address that its SDK uses. */
export function mountsOf(vendor: string): Mounts {
  return mounts[vendor] ?? usual
}

/** The vendors' video tasks, which outlive the process. */
export const videoTaskFamilies: readonly TaskFamily<unknown>[] = [
  wanTasks,
  seedanceTasks,
  veoTasks,
  klingTasks,
  minimaxTasks,
  runwayTasks,
  viduTasks,
  pixverseTasks,
  soraTasks,
]
