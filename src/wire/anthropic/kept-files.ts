import { isGiven, type Json, type JsonObject } from '../../base/json.ts'
import { notSupported, type WhereInBody } from '../issues.ts'
import { objectIn, placedObjectsIn } from '../loose.ts'

/**
 * The vendor keeps files and containers under the operator's account. Clients cannot create any through this gateway,
 * so an id in a request would name a file or container of someone else.
 */
export function refuseKeptFiles(body: JsonObject): void {
  if (isGiven(body['container'])) throw refusal('container')
  for (const [index, { content }] of placedObjectsIn(body['messages'])) {
    refuseIn(content, () => `messages[${index}].content`)
  }
}

/** Blocks can be nested: in a tool result, and in a document made of blocks. */
function refuseIn(content: Json | undefined, at: WhereInBody): void {
  if (!Array.isArray(content)) return // most blocks hold no other
  for (const [index, block] of placedObjectsIn(content)) {
    const place = () => `${at()}[${index}]`
    const source = objectIn(block['source'])
    if (block['type'] === 'container_upload') throw refusal(`${place()}.file_id`)
    if (source['type'] === 'file') throw refusal(`${place()}.source.file_id`)
    refuseIn(block['content'], () => `${place()}.content`)
    refuseIn(source['content'], () => `${place()}.source.content`)
  }
}

function refusal(param: string) {
  return notSupported(param, 'files and containers are not kept here. Send the bytes or a URL.')
}
