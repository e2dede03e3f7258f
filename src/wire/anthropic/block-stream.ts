import type { JsonObject } from '../../base/json.ts'
import { gap } from '../../capabilities/conversation.ts'
import { isWholeObject } from '../loose.ts'
import type { ThinkingDisplay } from './shown.ts'
import { isCarried, writeCallHead, type CallHead } from './write-answer.ts'

/** An event of this protocol, named by its type: the vendor's own clients ignore an event without a name. */
export function writeEvent(type: string, fields: JsonObject): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

type BlockKind = 'text' | 'thinking' | 'call' | 'whole'
type Call = { readonly head: CallHead; text: string }
/** Writes a block between two calls, when its turn comes. */
type Words = () => string

const emptyText = { type: 'text', text: '' }
const emptyThinking = { type: 'thinking', thinking: '', signature: '' }

/**
 * The blocks of one message. A block is opened when it has content, and blocks never overlap, as the protocol requires.
 * Parallel calls take turns: one call is streamed as it grows, and later calls and text wait in order until it is
 * complete.
 */
export class BlockStream {
  #index = -1
  #open: BlockKind | undefined
  /** Whether the last block is a text that was followed by something not shown. */
  #isParted = false
  #growing: Call | undefined
  readonly #calls = new Map<number, Call>()
  readonly #waiting: (Call | Words)[] = []
  readonly #display: ThinkingDisplay

  constructor(display: ThinkingDisplay) {
    this.#display = display
  }

  get hasCalls(): boolean {
    return this.#calls.size > 0
  }

  say(text: string): string {
    if (text === '') return ''
    return this.#inTurn(() => {
      const said = this.#isParted ? gap + text : text
      return this.#opened('text', emptyText) + this.#delta({ type: 'text_delta', text: said })
    })
  }

  /** Records that something not shown came: text after it is a separate text and must not run into the text before. */
  part(): string {
    return this.#inTurn(() => {
      if (this.#open !== 'text') return ''
      this.#isParted = true
      return this.#stop()
    })
  }

  /** A citation belongs to the text just before it; without such a text it is left out. */
  cite(citation: JsonObject): string {
    return this.#inTurn(() => (this.#open === 'text' ? this.#delta({ type: 'citations_delta', citation }) : ''))
  }

  think(thinking: string): string {
    if (thinking === '') return ''
    return this.#inTurn(() => {
      return this.#opened('thinking', emptyThinking) + this.#delta({ type: 'thinking_delta', thinking })
    })
  }

  /** Ends the thinking block with its signature; thinking that is not shown consists of its signature alone. */
  sign(signature: string): string {
    return this.#inTurn(() => this.#opened('thinking', emptyThinking) + this.#signed(signature))
  }

  /** A block that arrives complete. */
  whole(block: JsonObject): string {
    return this.#inTurn(() => this.#stop() + this.#start('whole', block) + this.#stop())
  }

  startCall(key: number, head: CallHead): string {
    if (this.#calls.has(key)) return ''
    const call: Call = { head, text: '' }
    this.#calls.set(key, call)
    return this.#inTurn(call)
  }

  growCall(key: number, text: string): string {
    const call = this.#calls.get(key)
    if (call === undefined) return ''
    // Official clients parse the input after every delta, and the one for Python throws where that is only whitespace.
    const grown = call.text === '' ? text.trimStart() : text
    call.text += grown
    return (call === this.#growing ? this.#grow(grown) : '') + this.#advance()
  }

  /** Writes everything that waits and ends the open block, because nothing more will come. */
  close(): string {
    let text = ''
    for (const next of this.#waiting.splice(0)) text += this.#letOut(next)
    this.#growing = undefined
    return text + this.#stop()
  }

  #inTurn(next: Call | Words): string {
    this.#waiting.push(next)
    return this.#advance()
  }

  /** Writes what waits once the growing call is complete: a complete object takes no more text. */
  #advance(): string {
    let text = ''
    while (this.#waiting.length > 0 && (this.#growing === undefined || isWholeObject(this.#growing.text))) {
      this.#growing = undefined
      const next = this.#waiting.shift()
      if (next !== undefined) text += this.#letOut(next)
    }
    return text
  }

  #letOut(next: Call | Words): string {
    if (typeof next === 'function') return next()
    this.#growing = next
    return this.#stop() + this.#openCall(next)
  }

  #openCall(call: Call): string {
    const { head } = call
    const isSigned = isCarried(head, this.#display)
    const carrier = isSigned ? this.#start('thinking', emptyThinking) + this.#signed(head.signature) : ''
    return carrier + this.#start('call', writeCallHead(head, this.#display)) + this.#grow(call.text)
  }

  #signed(signature: string): string {
    return this.#delta({ type: 'signature_delta', signature }) + this.#stop()
  }

  #grow(text: string): string {
    return text === '' ? '' : this.#delta({ type: 'input_json_delta', partial_json: text })
  }

  #opened(kind: BlockKind, block: JsonObject): string {
    return this.#open === kind ? '' : this.#stop() + this.#start(kind, block)
  }

  #start(kind: BlockKind, block: JsonObject): string {
    this.#index++
    this.#isParted = false
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
