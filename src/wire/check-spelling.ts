import { badRequest } from '../base/errors.ts'
import { isObject, type Json, type JsonObject } from '../base/json.ts'
import type { WhereInBody } from './issues.ts'

const top: WhereInBody = () => ''

/**
 * Makes a check that refuses a second spelling of one of these fields. Unknown fields pass on, and a server written in
 * Go reads names in any case and takes the last: there `N` or `Model` would be carried out, while `n` and `model` are
 * what was checked and priced. LiteLLM lays the fields of `extra_body` over those of the body.
 */
export function checkSpellingOf(names: readonly string[]): (fields: JsonObject, at?: WhereInBody) => void {
  const known = new Set(names)
  const byFolded = new Map(names.map((name) => [folded(name), name]))
  return (fields, at = top) => {
    for (const name of Object.keys(fields)) {
      const meant = known.has(name) ? undefined : byFolded.get(folded(name))
      if (meant === undefined) continue
      const param = at() + name
      throw badRequest(`Unknown parameter: '${param}'. Did you mean '${at()}${meant}'?`, param, 'unknown_parameter')
    }
    const extra = fields['extra_body']
    if (!isObject(extra)) return
    for (const name of Object.keys(extra)) {
      const meant = byFolded.get(folded(name))
      if (meant === undefined) continue
      const param = `${at()}extra_body.${name}`
      throw badRequest(`'${param}' is not supported: write '${at()}${meant}' itself.`, param, 'unsupported_value')
    }
  }
}

/**
 * Makes the same check for the objects inside a body: for those that these fields hold, alone or in a list, at any
 * depth. What else a body holds has names of the client's own, like the schema of a tool.
 */
export function checkSpellingInside(names: readonly string[], holders: readonly string[]) {
  const checkSpelling = checkSpellingOf([...names, ...holders])
  const holding = new Set(holders)
  return checkInside

  function checkInside(fields: JsonObject, at = top): void {
    for (const name of Object.keys(fields)) {
      if (!holding.has(name)) continue
      const held = fields[name]
      if (isObject(held)) checkHeld(held, () => `${at()}${name}.`)
      else if (Array.isArray(held)) {
        held.forEach((item: Json, index) => {
          if (isObject(item)) checkHeld(item, () => `${at()}${name}[${index}].`)
        })
      }
    }
  }

  function checkHeld(held: JsonObject, at: WhereInBody): void {
    checkSpelling(held, at)
    checkInside(held, at)
  }
}

/** By way of capitals, because the long s (ſ) is a small letter that counts as an s. */
function folded(name: string): string {
  return name.toUpperCase().toLowerCase()
}
