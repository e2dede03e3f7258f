import { badRequest, type GatewayError } from '../base/errors.ts'
import { isObject, type Json, type JsonObject } from '../base/json.ts'
import type { WhereInBody } from './issues.ts'

/** The refusal of a field, for where its object is in the body: only an error needs to know that. */
type Refusal = (at: string) => GatewayError

const top: WhereInBody = () => ''

/**
 * Makes a check that refuses a second spelling of one of these fields. Unknown fields pass on, and a server written in
 * Go reads names in any case and takes the last: there `N` or `Model` would be carried out, while `n` and `model` are
 * what was checked and priced. LiteLLM lays the fields of `extra_body` over those of the body.
 */
export function checkSpellingOf(names: readonly string[]): (fields: JsonObject, at?: WhereInBody) => void {
  const refusalOf = refusalBy(names)
  return (fields, at = top) => {
    const refusal = refusalOf(fields)
    if (refusal !== undefined) throw refusal(at())
  }
}

function refusalBy(names: readonly string[]): (fields: JsonObject) => Refusal | undefined {
  const known = new Set(names)
  const byFolded = new Map(names.map((name) => [folded(name), name]))
  return (fields) => {
    for (const name of Object.keys(fields)) {
      const meant = known.has(name) ? undefined : byFolded.get(folded(name))
      if (meant !== undefined) return misspelt(name, meant)
    }
    const extra = fields['extra_body']
    if (!isObject(extra)) return undefined
    for (const name of Object.keys(extra)) {
      const meant = byFolded.get(folded(name))
      if (meant !== undefined) return laidOver(name, meant)
    }
    return undefined
  }
}

function misspelt(name: string, meant: string): Refusal {
  return (at) => {
    const param = at + name
    return badRequest(`Unknown parameter: '${param}'. Did you mean '${at}${meant}'?`, param, 'unknown_parameter')
  }
}

function laidOver(name: string, meant: string): Refusal {
  return (at) => {
    const param = `${at}extra_body.${name}`
    return badRequest(`'${param}' is not supported: write '${at}${meant}' itself.`, param, 'unsupported_value')
  }
}

/**
 * Makes the same check for the objects inside a body: for those that these fields hold, alone or in a list, at any
 * depth. What else a body holds has names of the client's own, like the schema of a tool.
 */
export function checkSpellingInside(
  names: readonly string[],
  holders: readonly string[],
): (fields: JsonObject) => void {
  const refusalOf = refusalBy([...names, ...holders])
  const holding = new Set(holders)
  return (fields) => {
    const refusal = refusalInside(fields)
    if (refusal !== undefined) throw refusal('')
  }

  function refusalInside(fields: JsonObject): Refusal | undefined {
    for (const name of Object.keys(fields)) {
      const held = fields[name]
      if (typeof held !== 'object' || !holding.has(name)) continue // most fields hold a text
      const refusal = Array.isArray(held) ? refusalInList(held, name) : refusalIn(held, name)
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  function refusalInList(items: readonly Json[], name: string): Refusal | undefined {
    for (let index = 0; index < items.length; index++) {
      const refusal = refusalIn(items[index], name, index)
      if (refusal !== undefined) return refusal
    }
    return undefined
  }

  function refusalIn(held: Json | undefined, name: string, index?: number): Refusal | undefined {
    if (!isObject(held)) return undefined
    const refusal = refusalOf(held) ?? refusalInside(held)
    return refusal && below(index === undefined ? name : `${name}[${index}]`, refusal)
  }
}

/** The refusal of a field in an object that has this name where the refusal is told its place. */
function below(name: string, refusal: Refusal): Refusal {
  return (at) => refusal(`${at}${name}.`)
}

/** By way of capitals, because the long s (ſ) is a small letter that counts as an s. */
function folded(name: string): string {
  return name.toUpperCase().toLowerCase()
}
