import { isObject, type JsonObject } from '../../base/json.ts'
import { parseLoosely } from '../loose.ts'
import { writeCallHead } from './write-answer.ts'

/** An event of this protocol: its name is its type, and without one the vendor's own clients do not see it. */
export function writeEvent(type: string, fields: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

type CallHead = { readonly id: string; readonly name: string; readonly signature?: string }
type BlockKind = 'text' | 'thinking' | 'call' | 'whole'
type Call = { readonly head: CallHead; text: string; state: 'waiting' | 'open' | 'over' }

const emptyText = { type: 'text', text: '' }
const emptyThought = { type: 'thinking', thinking: '', signature: '' }

/**
 * The blocks of one message, opened when there is something to put in and never overlapping, as this protocol wants
 * them. Calls that grow side by side take turns: the first goes out as it grows, the others wait until it is whole.
 */
export class BlockStream {
  #index = -1
  #open: BlockKind | undefined
  readonly #calls = new Map<number, Call>()

  get hasCalls(): boolean {
    return this.#calls.size > 0
  }

  say(text: string): string {
    if (text === '') return ''
    return this.#opened('text', emptyText) + this.#delta({ type: 'text_delta', text })
  }

  /** A citation belongs to the words just said; without any it would stand alone, and is left out. */
  cite(citation: JsonObject): string {
    return this.#open === 'text' ? this.#delta({ type: 'citations_delta', citation }) : ''
  }

  think(thinking: string): string {
    if (thinking === '') return ''
    return this.#opened('thinking', emptyThought) + this.#delta({ type: 'thinking_delta', thinking })
  }

  /** Ends the thought it signs; one that is not shown is nothing but its signature. */
  sign(signature: string): string {
    return this.#opened('thinking', emptyThought) + this.#signed(signature)
  }

  /** A block that comes complete. */
  whole(block: JsonObject): string {
    return this.close() + this.#start('whole', block) + this.#stop()
  }

  startCall(key: number, head: CallHead): string {
    if (this.#calls.has(key)) return ''
    this.#calls.set(key, { head, text: '', state: 'waiting' })
    return this.#nextCall()
  }

  growCall(key: number, text: string): string {
    const call = this.#calls.get(key)
    if (call === undefined || call.state === 'over') return ''
    call.text += text
    if (call.state === 'open') return this.#grow(text)
    return this.#nextCall()
  }

  /** Ends whatever is open and lets the calls out that wait. */
  close(): string {
    let text = this.#stop()
    for (const call of this.#calls.values()) {
      if (call.state === 'waiting') text += this.#openCall(call) + this.#stop()
      call.state = 'over'
    }
    return text
  }

  /** The next call goes out when the one before it is whole: a complete object takes no more text. */
  #nextCall(): string {
    const open = [...this.#calls.values()].find(({ state }) => state === 'open')
    if (open !== undefined) {
      if (!isWhole(open.text)) return ''
      open.state = 'over'
    }
    const next = [...this.#calls.values()].find(({ state }) => state === 'waiting')
    return next === undefined ? '' : this.#stop() + this.#openCall(next)
  }

  #openCall(call: Call): string {
    const { signature } = call.head
    const carrier = signature === undefined ? '' : this.#start('thinking', emptyThought) + this.#signed(signature)
    call.state = 'open'
    return carrier + this.#start('call', writeCallHead(call.head)) + this.#grow(call.text)
  }

  #signed(signature: string): string {
    return this.#delta({ type: 'signature_delta', signature }) + this.#stop()
  }

  #grow(text: string): string {
    return text === '' ? '' : this.#delta({ type: 'input_json_delta', partial_json: text })
  }

  #opened(kind: BlockKind, block: JsonObject): string {
    return this.#open === kind ? '' : this.close() + this.#start(kind, block)
  }

  #start(kind: BlockKind, block: JsonObject): string {
    this.#index++
    this.#open = kind
    return writeEvent('content_block_start', { index: this.#index, content_block: block })
  }

  #delta(delta: JsonObject): string {
    return writeEvent('content_block_delta', { index: this.#index, delta })
  }

  #stop(): string {
    if (this.#open === undefined) return ''
    this.#open = undefined
    return writeEvent('content_block_stop', { index: this.#index })
  }
}

function isWhole(argumentsText: string): boolean {
  return argumentsText.trimEnd().endsWith('}') && isObject(parseLoosely(argumentsText))
}
