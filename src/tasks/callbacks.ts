import { sameBytes, type Mac } from '../base/secret.ts'
import type { Callbacks } from './parts.ts'

const tokenPattern = /^(vid_[0-9a-f]{32})\.([\w-]{43})$/

/** A token names its task and is signed, so that nothing has to be stored for it and none can be forged. */
export function makeCallbacks(mac: Mac, publicUrl: string): Callbacks {
  const sign = (taskId: string) => mac(taskId).toString('base64url')
  return {
    urlOf: (taskId) => `${publicUrl}/callbacks/video/${taskId}.${sign(taskId)}`,
    taskOf(token) {
      const [, taskId, signature] = tokenPattern.exec(token) ?? []
      if (taskId === undefined || signature === undefined) return undefined
      return sameBytes(Buffer.from(sign(taskId)), Buffer.from(signature)) ? taskId : undefined
    },
  }
}
