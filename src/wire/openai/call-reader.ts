import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { ReplyEvent } from '../../capabilities/conversation.ts'
import { readSignature } from '../google-signature.ts'
import { isWholeObject, objectIn, textIn } from '../loose.ts'
import { madeCallId } from '../made-call-id.ts'
import { argumentsTextIn } from './read-answer.ts'

/** A call with the vendor's index and id, its arguments so far, and the number we gave it once its name was known. */
type SeenCall = { readonly index: number; readonly id: string; text: string; at: number | undefined }

/** Reads the calls of one choice of a stream. We count them in the order in which their names came. */
export class CallReader {
  readonly #choice: number
  readonly #calls: SeenCall[] = []
  #started = 0

  constructor(choice: number) {
    this.#choice = choice
  }

  get hasCalls(): boolean {
    return this.#started > 0
  }

  read(deltas: readonly Json[], replyId: string): ReplyEvent[] {
    return deltas.flatMap((delta, position) => (isObject(delta) ? this.#readDelta(delta, position, replyId) : []))
  }

  #readDelta(delta: JsonObject, position: number, replyId: string): ReplyEvent[] {
    const choice = this.#choice
    const index = typeof delta['index'] === 'number' ? delta['index'] : position
    const called = objectIn(delta['function'])
    const id = textIn(delta['id'])
    const name = textIn(called['name'])
    const text = argumentsTextIn(called['arguments'])
    const call = this.#callOf({ index, id, name, text })
    if (isRepetition(call, text)) return []
    call.text += text
    if (call.at !== undefined) return grown(choice, call.at, text)
    // A name that comes late is waited for: no client can use a call without one, or send it back.
    if (name === '') return []
    const at = this.#started++
    call.at = at
    const signature = readSignature(delta)
    const start: ReplyEvent = {
      kind: 'tool-call-start',
      choice,
      call: at,
      id: call.id || id || madeCallId(JSON.stringify([replyId, choice, at])),
      name,
      ...(signature !== undefined && { signature }),
    }
    return [start, ...grown(choice, at, call.text)]
  }

  /** The call that a delta continues, or the one that it begins. */
  #callOf(delta: KnownCall & { readonly name: string }): SeenCall {
    const found = this.#calls[findCall(this.#calls, delta)]
    if (found !== undefined) return found
    const call = { index: delta.index, id: delta.id, text: '', at: undefined }
    this.#calls.push(call)
    return call
  }
}

function grown(choice: number, call: number, text: string): ReplyEvent[] {
  return text === '' ? [] : [{ kind: 'tool-call-delta', choice, call, text }]
}

/** Some servers send all arguments once more at the end of a call. Only a delta that may begin an object is checked. */
function isRepetition({ text: known, at }: SeenCall, text: string): boolean {
  return at !== undefined && text.startsWith('{') && isWholeObject(known)
}

/** A call as far as it tells which deltas are its own. */
type KnownCall = Readonly<Pick<SeenCall, 'index' | 'id' | 'text'>>

/**
 * Which call a delta continues; -1 where it begins one. Some vendors give all parallel calls the same index and only
 * different ids, or no ids either and each call in one piece. A delta without a name cannot begin a call, so an unknown
 * id in it is ignored.
 */
export function findCall(
  known: readonly KnownCall[],
  { index, id, name, text }: KnownCall & { readonly name: string },
): number {
  const same = known.findLastIndex((call) => call.index === index && (id === '' || call.id === '' || call.id === id))
  if (same === -1) return name === '' ? known.findLastIndex((call) => call.index === index) : -1
  const isAnother = id === '' && name !== '' && text !== '' && isWholeObject(known[same]?.text ?? '')
  return isAnother ? -1 : same
}
