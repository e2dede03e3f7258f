import { badRequest } from '../../base/errors.ts'
import { isGiven, type Json, type JsonObject } from '../../base/json.ts'
import { objectIn, placedObjectsIn } from '../loose.ts'

/**
 * What the vendor keeps, it keeps for the account whose key we show: the operator's. No client can put a file or a
 * container there through this gateway, so one that names an id names somebody else's.
 */
export function refuseKeptFiles(body: JsonObject): void {
  if (isGiven(body['container'])) throw refusal('container')
  for (const [index, { content }] of placedObjectsIn(body['messages'])) {
    refuseIn(content, `messages[${index}].content`)
  }
}

/** Blocks stand in blocks: in the result of a tool, and in a document that is made of them. */
function refuseIn(content: Json | undefined, at: string): void {
  for (const [index, block] of placedObjectsIn(content)) {
    const place = `${at}[${index}]`
    const source = objectIn(block['source'])
    if (block['type'] === 'container_upload') throw refusal(`${place}.file_id`)
    if (source['type'] === 'file') throw refusal(`${place}.source.file_id`)
    refuseIn(block['content'], `${place}.content`)
    refuseIn(source['content'], `${place}.source.content`)
  }
}

function refusal(param: string) {
  const message = `'${param}' is not supported: files and containers are not kept here. Send the bytes or a URL.`
  return badRequest(message, param, 'unsupported_value')
}
