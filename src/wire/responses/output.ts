import { isObject, type Json, type JsonObject } from '../../base/json.ts'
import type { Citation, Media, ReplyEvent, ToolCallBlock } from '../../capabilities/conversation.ts'
import { CitedText } from '../cited-text.ts'
import { writeSignature } from '../google-signature.ts'
import { isWholeObject, itemsIn, objectIn, parseLoosely } from '../loose.ts'
import { seal, type Sealed } from './sealed.ts'
import type { Shown } from './shown.ts'
import type { ClientTool } from './tools.ts'

/** A change of the output: the event's type in this protocol, and its fields. */
export type OutputEvent = { readonly type: string; readonly fields: JsonObject }

type ItemStatus = 'completed' | 'incomplete'
type CallHead = Pick<ToolCallBlock, 'id' | 'name' | 'signature'>

type TextPart = {
  readonly type: 'output_text'
  text: string
  annotations: JsonObject[]
  logprobs: Json[]
  readonly cited: CitedText
}
type RefusalPart = { readonly type: 'refusal'; refusal: string }
type Open = { readonly id: string; readonly at: number }
type Message = Open & { readonly kind: 'message'; readonly parts: (TextPart | RefusalPart)[] }
type ReasoningItem = Open & { readonly kind: 'thought'; text: string; isSummed: boolean }
type Call = Open & { readonly head: CallHead; readonly called: ClientTool; text: string; isOver: boolean }

type OutputOptions = {
  /** The suffix of the item ids. It is ours, because the vendor's ids may be missing or of another form. */
  readonly name: string
  readonly shown: Shown
  /** A tool as the client knows it, by the name that the vendor calls. */
  calledOf(name: string): ClientTool
}

/**
 * The output of a response as it grows: every change is returned as events, and `items` holds the result so far. A
 * message or a reasoning item is closed when another item begins. Calls may grow in parallel and are told apart by
 * their key.
 */
export class Output {
  readonly items: JsonObject[] = []
  readonly #options: OutputOptions
  #open: Message | ReasoningItem | undefined
  readonly #calls = new Map<number, Call>()

  constructor(options: OutputOptions) {
    this.#options = options
  }

  say(text: string, logprobs?: Json): OutputEvent[] {
    const shown = this.#options.shown.logprobs === undefined ? [] : itemsIn(objectIn(logprobs)['content'])
    if (text === '' && shown.length === 0) return []
    const { message, part, events } = this.#inText()
    part.text += text
    part.cited.grow(text)
    for (const logprob of shown) part.logprobs.push(logprob)
    events.push(this.#delta('response.output_text.delta', message, { delta: text, logprobs: shown }))
    return events
  }

  refuse(text: string): OutputEvent[] {
    if (text === '') return []
    const { message, events } = this.#inMessage()
    let part = message.parts.at(-1)
    if (part?.type !== 'refusal') {
      events.push(...this.#closePart(message))
      part = { type: 'refusal', refusal: '' }
      message.parts.push(part)
      events.push(this.#delta('response.content_part.added', message, { part: { ...part } }))
    }
    part.refusal += text
    events.push(this.#delta('response.refusal.delta', message, { delta: text }))
    return events
  }

  /** The protocol cites web pages only, for the text since the last citation. Without text there is nothing to cite. */
  cite({ url, title }: Citation): OutputEvent[] {
    const message = this.#open?.kind === 'message' ? this.#open : undefined
    const part = message?.parts.at(-1)
    if (message === undefined || part?.type !== 'output_text' || url === undefined) return []
    const annotation = { type: 'url_citation', url, title: title ?? url, ...part.cited.cite() }
    part.annotations.push(annotation)
    const place = { annotation, annotation_index: part.annotations.length - 1 }
    return [this.#delta('response.output_text.annotation.added', message, place)]
  }

  think(text: string): OutputEvent[] {
    if (text === '') return []
    const { thought, events } = this.#inReasoning()
    thought.text += text
    if (!this.#options.shown.wantsReasoning) return events
    const place = { ...placeOf(thought), summary_index: 0 }
    if (!thought.isSummed) {
      thought.isSummed = true
      const part = { type: 'summary_text', text: '' }
      events.push({ type: 'response.reasoning_summary_part.added', fields: { ...place, part } })
    }
    events.push({ type: 'response.reasoning_summary_text.delta', fields: { ...place, delta: text } })
    return events
  }

  /** Ends the reasoning item with its signature; reasoning that is not shown consists of the signature alone. */
  sign(text: string, signature: string): OutputEvent[] {
    const { thought, events } = this.#inReasoning()
    return [...events, ...this.#closeReasoning(thought, { kind: 'thought', text, signature })]
  }

  redact(data: string): OutputEvent[] {
    return this.#sealed({ kind: 'redacted', data })
  }

  /** An image in the model's answer, in the form that the protocol has for its own image tool. */
  show(media: Media): OutputEvent[] {
    if (media.kind !== 'bytes') return []
    const events = this.#close('completed')
    const head = { type: 'image_generation_call', id: this.#id('ig') }
    const format = media.mediaType.replace(/^image\//, '')
    const item = { ...head, status: 'completed', output_format: format, result: media.base64 }
    events.push(this.#add({ ...head, status: 'in_progress', result: null }))
    events.push(this.#done(this.items.length - 1, item))
    return events
  }

  startCall(key: number, head: CallHead): OutputEvent[] {
    if (this.#calls.has(key)) return []
    const { signature } = head
    const events = this.#close('completed')
    if (signature !== undefined && this.#options.shown.wantsEncrypted)
      events.push(...this.#sealed({ kind: 'call', signature }))
    const called = this.#options.calledOf(head.name)
    const id = this.#id(prefixes[called.kind])
    const call: Call = { id, at: this.items.length, head, called, text: '', isOver: false }
    this.#calls.set(key, call)
    events.push(this.#add(writeCall(call, undefined)))
    return events
  }

  growCall(key: number, text: string): OutputEvent[] {
    const call = this.#calls.get(key)
    if (call === undefined || call.isOver || text === '') return []
    call.text += text
    // Plain text is wrapped in an object, and tool search arguments are one: only a complete object can be read.
    if (call.called.kind !== 'function') return []
    return [{ type: 'response.function_call_arguments.delta', fields: { ...placeOf(call), delta: text } }]
  }

  /** Ends what is open with the answer's status. An empty call before other items is complete: it has no arguments. */
  finish(status: ItemStatus): OutputEvent[] {
    const events = this.#close(status)
    for (const call of this.#calls.values()) {
      if (call.isOver) continue
      const isEmpty = call.text.trim() === '' && call.at < this.items.length - 1
      events.push(...this.#closeCall(call, isEmpty ? 'completed' : status))
    }
    return events
  }

  /** Ends a failed answer. Reasoning that was neither complete nor shown is left out, because it is not charged. */
  breakOff(): void {
    if (this.#open?.kind === 'thought' && !this.#open.isSummed) this.#open = undefined
    this.finish('incomplete')
  }

  /** Whether the client sees nothing of an event. Reasoning that is not shown may still show its sealed content. */
  hides({ kind }: ReplyEvent): boolean {
    const { wantsReasoning, wantsEncrypted } = this.#options.shown
    if (kind === 'thinking-delta') return !wantsReasoning
    return !wantsEncrypted && (kind === 'thinking-sign' || kind === 'thinking-redact')
  }

  #id(prefix: string): string {
    return `${prefix}_${this.#options.name}${this.items.length.toString().padStart(2, '0')}`
  }

  #add(item: JsonObject): OutputEvent {
    const at = this.items.push(item) - 1
    return { type: 'response.output_item.added', fields: { output_index: at, item } }
  }

  #done(at: number, item: JsonObject): OutputEvent {
    this.items[at] = item
    return { type: 'response.output_item.done', fields: { output_index: at, item } }
  }

  #inMessage(): { message: Message; events: OutputEvent[] } {
    if (this.#open?.kind === 'message') return { message: this.#open, events: [] }
    const events = this.#close('completed')
    const message: Message = { kind: 'message', id: this.#id('msg'), at: this.items.length, parts: [] }
    this.#open = message
    events.push(this.#add(writeMessage(message, 'in_progress')))
    return { message, events }
  }

  #inText(): { message: Message; part: TextPart; events: OutputEvent[] } {
    const { message, events } = this.#inMessage()
    const last = message.parts.at(-1)
    if (last?.type === 'output_text') return { message, part: last, events }
    events.push(...this.#closePart(message))
    const part: TextPart = { type: 'output_text', text: '', annotations: [], logprobs: [], cited: new CitedText() }
    message.parts.push(part)
    events.push(this.#delta('response.content_part.added', message, { part: writePart(part) }))
    return { message, part, events }
  }

  #inReasoning(): { thought: ReasoningItem; events: OutputEvent[] } {
    if (this.#open?.kind === 'thought') return { thought: this.#open, events: [] }
    const events = this.#close('completed')
    const thought: ReasoningItem = {
      kind: 'thought',
      id: this.#id('rs'),
      at: this.items.length,
      text: '',
      isSummed: false,
    }
    this.#open = thought
    events.push(this.#add({ type: 'reasoning', id: thought.id, summary: [] }))
    return { thought, events }
  }

  #delta(type: string, { id, at, parts }: Message, fields: JsonObject): OutputEvent {
    return { type, fields: { item_id: id, output_index: at, content_index: parts.length - 1, ...fields } }
  }

  #closeOpen(status: ItemStatus): OutputEvent[] {
    const open = this.#open
    if (open === undefined) return []
    return open.kind === 'message' ? this.#closeMessage(open, status) : this.#closeReasoning(open)
  }

  #close(status: ItemStatus): OutputEvent[] {
    const events = this.#closeOpen(status)
    for (const call of this.#calls.values()) {
      if (!call.isOver && isWholeObject(call.text)) events.push(...this.#closeCall(call, 'completed'))
    }
    return events
  }

  #closePart(message: Message): OutputEvent[] {
    const part = message.parts.at(-1)
    if (part === undefined) return []
    const written = writePart(part)
    const said =
      part.type === 'refusal'
        ? this.#delta('response.refusal.done', message, { refusal: part.refusal })
        : this.#delta('response.output_text.done', message, { text: part.text, logprobs: part.logprobs })
    return [said, this.#delta('response.content_part.done', message, { part: written })]
  }

  #closeMessage(message: Message, status: ItemStatus): OutputEvent[] {
    this.#open = undefined
    return [...this.#closePart(message), this.#done(message.at, writeMessage(message, status))]
  }

  #closeReasoning(thought: ReasoningItem, sealed: Sealed = { kind: 'thought', text: thought.text }): OutputEvent[] {
    this.#open = undefined
    const { id, at, text, isSummed } = thought
    const part = { type: 'summary_text', text }
    const place = { ...placeOf(thought), summary_index: 0 }
    const item = {
      type: 'reasoning',
      id,
      summary: isSummed ? [part] : [],
      ...(this.#options.shown.wantsEncrypted && { encrypted_content: seal(sealed) }),
    }
    const events: OutputEvent[] = isSummed
      ? [
          { type: 'response.reasoning_summary_text.done', fields: { ...place, text } },
          { type: 'response.reasoning_summary_part.done', fields: { ...place, part } },
        ]
      : []
    return [...events, this.#done(at, item)]
  }

  /** A reasoning item that consists of its sealed content alone. */
  #sealed(sealed: Sealed): OutputEvent[] {
    const before = this.#close('completed')
    const { thought, events } = this.#inReasoning()
    return [...before, ...events, ...this.#closeReasoning(thought, sealed)]
  }

  #closeCall(call: Call, status: ItemStatus): OutputEvent[] {
    call.isOver = true
    const events = this.#finalEvents(call, status)
    events.push(this.#done(call.at, writeCall(call, status)))
    return events
  }

  #finalEvents(call: Call, status: ItemStatus): OutputEvent[] {
    const place = placeOf(call)
    switch (call.called.kind) {
      case 'tool-search':
        return []
      case 'custom': {
        const input = readPlainInput(call.text)
        const name = 'response.custom_tool_call_input'
        return [
          { type: `${name}.delta`, fields: { ...place, delta: input } },
          { type: `${name}.done`, fields: { ...place, input } },
        ]
      }
      case 'function': {
        const events = call.text.trim() === '' && status === 'completed' ? this.#emptied(call) : []
        // OpenAI's client for Python requires a name here, while the one for Node knows none.
        const fields = { ...place, name: call.called.name, arguments: call.text }
        return [...events, { type: 'response.function_call_arguments.done', fields }]
      }
    }
  }

  /** A call without arguments gets an empty object. */
  #emptied(call: Call): OutputEvent[] {
    call.text = '{}'
    return [{ type: 'response.function_call_arguments.delta', fields: { ...placeOf(call), delta: call.text } }]
  }
}

function placeOf({ id, at }: Open): { item_id: string; output_index: number } {
  return { item_id: id, output_index: at }
}

function writePart(part: TextPart | RefusalPart): JsonObject {
  if (part.type === 'refusal') return { ...part }
  const { type, text, annotations, logprobs } = part
  return { type, text, annotations: [...annotations], logprobs: [...logprobs] }
}

function writeMessage({ id, parts }: Message, status: ItemStatus | 'in_progress'): JsonObject {
  return { type: 'message', id, status, role: 'assistant', content: parts.map(writePart) }
}

const prefixes = { function: 'fc', custom: 'ctc', 'tool-search': 'tsc' } as const

function writeCall({ id, head, called, text }: Call, status: ItemStatus | undefined): JsonObject {
  const { name, namespace, kind } = called
  const named = { name, ...(namespace !== undefined && { namespace }) }
  const own = { id, call_id: head.id, status: status ?? 'in_progress' }
  const isOver = status !== undefined
  if (kind === 'custom') {
    return { type: 'custom_tool_call', ...own, ...named, input: isOver ? readPlainInput(text) : '' }
  }
  if (kind === 'tool-search') {
    return { type: 'tool_search_call', ...own, execution: 'client', arguments: objectIn(parseLoosely(text)) }
  }
  const written = { type: 'function_call', ...own, ...named, arguments: isOver ? text : '' }
  return { ...written, ...writeSignature(head.signature) }
}

/** The plain text of a call, as far as it came. Arguments of any other form are kept as they are. */
function readPlainInput(argumentsText: string): string {
  if ('{"input":"'.startsWith(argumentsText.replaceAll(/\s/g, ''))) return ''
  for (let cut = 0; cut <= brokenCharactersMax; cut++) {
    const begun = argumentsText.slice(0, argumentsText.length - cut)
    const input = (cut === 0 ? parseLoosely(begun) : undefined) ?? parseLoosely(`${begun}"}`)
    if (isObject(input) && typeof input['input'] === 'string') return input['input']
  }
  return argumentsText
}

// `\u123`: an escape that was cut off in its middle.
const brokenCharactersMax = 5
