import { excerpt } from '../../base/errors.ts'
import type { JsonObject } from '../../base/json.ts'
import { invalid } from '../issues.ts'
import type { ChatRequest } from './chat-schema.ts'

const words = ['none', 'auto', 'required'] as const

export function isToolWord(choice: string): choice is (typeof words)[number] {
  return (words as readonly string[]).includes(choice)
}

/**
 * Replaces a tool chosen by its bare name, which the specification allows, by the object that vendors take. `none`,
 * `auto` and `required` are never taken for names.
 */
export function withToolObject(native: JsonObject, { tool_choice: choice, tools }: ChatRequest): JsonObject {
  if (typeof choice !== 'string' || isToolWord(choice)) return native
  for (const tool of tools ?? []) {
    const { name } = tool.type === 'function' ? tool.function : tool.custom
    if (name === choice) return { ...native, tool_choice: { type: tool.type, [tool.type]: { name } } }
  }
  const taken = `${words.map((word) => `'${word}'`).join(', ')} or the name of one of 'tools'`
  throw invalid('tool_choice', `expected ${taken}, received '${excerpt(choice)}'`)
}
