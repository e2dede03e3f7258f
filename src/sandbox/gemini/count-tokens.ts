import { pause } from '../../base/pause.ts'
import { noUnits } from '../bill.ts'
import { faultFor } from '../faults.ts'
import { type Fields, fieldsIn, isGiven, itemsIn } from '../fields.ts'
import type { Call, World } from '../protocol.ts'
import { readTexts } from './ask.ts'
import { checkContents, checkSystemInstruction } from './check-contents.ts'
import { refusalsFor } from './dialect.ts'
import { GoogleError, invalid, jsonType, modelNotFound, writeError, writeJson } from './errors.ts'
import { readKey } from './key.ts'
import { countPrompt } from './prompt.ts'
import { readMessage } from './proto.ts'
import { countTokensRequest } from './shapes.ts'
import { writeModalities } from './write.ts'

/** Counts without answering. Counting is free but adds a line to the bill, so that tests can see that it is free. */
export async function countTokens(call: Call, world: World, model: string): Promise<Response> {
  const addLine = (status: number): void => world.bill.add({ ref: call.ref, model, status, units: noUnits })
  try {
    const key = readKey(call.request)
    const read = readMessage(call.text, countTokensRequest)
    if (!world.models.get(call.vendor)?.has(model)) throw modelNotFound(model, 'countTokens')
    const body = wholeRequest(read)
    const contents = itemsIn(body.contents).map(fieldsIn)
    checkContents(contents, false)
    checkSystemInstruction(body.systemInstruction)

    const { steering } = readTexts(body, contents)
    const delayMs = steering.number('delay')
    if (delayMs !== undefined) await pause(delayMs, call.request.signal)
    const fault = await faultFor(steering, refusalsFor(key))
    addLine(fault?.status ?? 200)
    if (fault) return fault
    const counted = countPrompt(body, contents, call.text)
    const answer = { totalTokens: counted.tokens, promptTokensDetails: writeModalities(counted) }
    return new Response(writeJson(answer), { headers: { 'content-type': jsonType } })
  } catch (error) {
    if (!(error instanceof GoogleError)) throw error
    addLine(error.status)
    return writeError(error, false)
  }
}

function wholeRequest(read: Fields): Fields {
  const { contents, generateContentRequest: whole } = read
  if (isGiven(contents) && isGiven(whole)) {
    throw invalid('contents and generate_content_request are mutually exclusive.')
  }
  return isGiven(whole) ? fieldsIn(whole) : read
}
