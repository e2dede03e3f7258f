import { parsedOr } from './fields.ts'
import { createRing } from './ring.ts'

/** One call as the vendor received it, kept so that a test can assert what the gateway sent. */
export type ReceivedCall = { vendor: string; path: string; ref: string | null; headers: Headers; text: string }

export type Calls = {
  /** How many calls came in since the last clearing, including those no longer kept. */
  readonly count: number
  add(call: ReceivedCall): void
  list(): unknown[]
  clear(): void
}

const callsMax = 1_000
const textCharactersMax = 64 * 1024 * 1024

/** The latest calls. Recording keeps references only; headers and bodies are read when the list is requested. */
export function createCalls(): Calls {
  const kept = createRing<ReceivedCall>(callsMax)
  let characters = 0
  let count = 0
  return {
    get count() {
      return count
    },
    add(call) {
      count++
      characters += call.text.length - (kept.push(call)?.text.length ?? 0)
      // A thousand bodies full of images would fill the memory. The newest call is always kept.
      while (characters > textCharactersMax && kept.size > 1) characters -= kept.shift()?.text.length ?? 0
    },
    list: () => kept.values().map(describe),
    clear() {
      kept.clear()
      characters = 0
      count = 0
    },
  }
}

/** `body` is the parsed JSON, or the text if it is not JSON. `text` keeps the digits that JSON parsing would round. */
function describe({ vendor, path, ref, headers, text }: ReceivedCall): unknown {
  const authorization = headers.get('authorization')
  return { vendor, path, ref, authorization, headers: Object.fromEntries(headers), body: parsedOr(text, text), text }
}
