import type { Capability } from '../../capabilities/capability.ts'
import type { Tool } from '../tool.ts'
import { chat } from './chat.ts'
import { createEmbeddings } from './embeddings.ts'
import { editImage, generateImage } from './images.ts'
import { getModel, listModels } from './models.ts'
import { speak } from './speech.ts'
import { getUsage } from './usage.ts'
import { cancelVideo, generateVideo, getVideo, listVideos } from './videos.ts'

/** The tools of each capability. A new capability does not compile until it has a row here. */
const byCapability = {
  chat: [chat],
  images: [generateImage],
  edits: [editImage],
  video: [generateVideo, getVideo, listVideos, cancelVideo],
  embeddings: [createEmbeddings],
  speech: [speak],
} as const satisfies Record<Capability, readonly [Tool, ...Tool[]]>

/** Every tool, in the order in which a model reads them. */
export const tools: readonly Tool[] = [listModels, getModel, ...Object.values(byCapability).flat(), getUsage]
