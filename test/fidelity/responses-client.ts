import type { Answer } from './client.ts'
import { canonical, fieldsIn, objectsIn, textIn, type Fields, type Value } from './exact-json.ts'

type Growing = Record<string, Value | undefined>

/** The events of the responses protocol, put together as its SDK does, which throws where their order is wrong. */
export function joinResponse(events: readonly Fields[], status: number): Answer {
  const numbers = events.map(({ sequence_number: number }) => Number(number))
  if (numbers.some((number, at) => number !== at)) throw new Error(`events are counted ${numbers.join(' ')}`)
  const [created, begun] = events.map(({ type }) => textIn(type))
  if (created !== 'response.created' || begun !== 'response.in_progress') throw new Error(`it begins with ${created}`)
  const last = events.at(-1)
  if (!/^response\.(?:completed|incomplete)$/.test(textIn(last?.['type']))) throw new Error('the stream has no end')
  const items: Growing[] = []
  const done = new Map<number, Fields>()
  for (const event of events.slice(2, -1)) take(event, items, done)
  const body = fieldsIn(last?.['response'])
  const told = items.map((_, at) => done.get(at) ?? null)
  if (canonical(told) !== canonical(body['output'])) throw new Error('what was told is not what it came to')
  for (const [at, item] of items.entries()) {
    const whole = done.get(at) ?? {}
    for (const field of ['content', 'summary', 'arguments'] as const) {
      const isLost = item[field] !== undefined && canonical(item[field]) !== canonical(whole[field])
      if (isLost && textIn(item['type']) !== 'tool_search_call') throw new Error(`pieces of ${field} are not the whole`)
    }
  }
  return { status, body, events }
}

function take(event: Fields, items: Growing[], done: Map<number, Fields>): void {
  const { type, output_index: place, item, item_id: id } = event
  const at = Number(place)
  if (type === 'response.output_item.added') {
    if (at !== items.length) throw new Error('items are counted wrong')
    items.push({ ...fieldsIn(item) })
    return
  }
  const open = items[at]
  if (open === undefined || done.has(at)) throw new Error(`${textIn(type)} of no open item`)
  if (type === 'response.output_item.done') {
    done.set(at, fieldsIn(item))
    return
  }
  if (id !== open['id']) throw new Error(`${textIn(type)} of another item`)
  grow(event, open)
}

function grow(event: Fields, open: Growing): void {
  const { type, content_index: part, summary_index: thought, delta } = event
  const content = objectsIn(open['content'])
  const summary = objectsIn(open['summary'])
  const put = (field: string, list: readonly Fields[], at: number, more: Fields) => {
    open[field] = list.map((known, index) => (index === at ? { ...known, ...more } : known))
  }
  switch (textIn(type)) {
    case 'response.content_part.added':
      if (part !== content.length) throw new Error('parts are counted wrong')
      open['content'] = [...content, fieldsIn(event['part'])]
      break
    case 'response.reasoning_summary_part.added':
      open['summary'] = [...summary, fieldsIn(event['part'])]
      break
    case 'response.output_text.delta':
      put('content', content, Number(part), { text: textIn(content[Number(part)]?.['text']) + textIn(delta) })
      break
    case 'response.refusal.delta':
      put('content', content, Number(part), { refusal: textIn(content[Number(part)]?.['refusal']) + textIn(delta) })
      break
    case 'response.reasoning_summary_text.delta':
      put('summary', summary, Number(thought), { text: textIn(summary[Number(thought)]?.['text']) + textIn(delta) })
      break
    case 'response.function_call_arguments.delta':
      open['arguments'] = textIn(open['arguments']) + textIn(delta)
      break
    case 'response.custom_tool_call_input.delta':
    case 'response.output_text.annotation.added':
    case 'response.output_text.done':
    case 'response.content_part.done':
    case 'response.refusal.done':
    case 'response.reasoning_summary_text.done':
    case 'response.reasoning_summary_part.done':
    case 'response.function_call_arguments.done':
    case 'response.custom_tool_call_input.done':
      break
    default:
      throw new Error(`an event that nobody knows: ${textIn(type)}`)
  }
}
