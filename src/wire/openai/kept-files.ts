import type { JsonObject } from '../../base/json.ts'
import { notSupported } from '../issues.ts'
import { itemsIn, objectIn, placedObjectsIn, textIn } from '../loose.ts'

/** The types of part that link to media, each in a field of its own name. */
const linking = ['image_url', 'video_url', 'audio_url'] as const

/**
 * Vendors keep files under the operator's account, and name them by an id or by a scheme of their own (Moonshot:
 * `ms://…`). Clients cannot keep any through this gateway, so a name in a request would be that of someone else's file.
 */
export function refuseKeptFiles(body: JsonObject): void {
  for (const [turn, message] of itemsIn(body['messages']).entries()) {
    const { content } = objectIn(message)
    if (!Array.isArray(content)) continue // the content of most messages is one text
    for (const [index, part] of placedObjectsIn(content)) {
      const field = fieldOfKept(part)
      if (field === undefined) continue
      throw notSupported(`messages[${turn}].content[${index}].${field}`, 'files are not kept here. Send the bytes.')
    }
  }
}

function fieldOfKept(part: JsonObject): string | undefined {
  if (typeof objectIn(part['file'])['file_id'] === 'string') return 'file.file_id'
  const type = linking.find((one) => one === part['type'])
  if (type === undefined || !vendorsScheme.test(textIn(objectIn(part[type])['url']))) return undefined
  return `${type}.url`
}

const vendorsScheme = /^(?!https?:)[a-z][a-z\d+.-]*:\/\//i
