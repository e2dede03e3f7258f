import { html, inline, join, type Html } from './html.ts'
import type { Schema } from './types.ts'

/** Null is shown only in answers, since in requests it just means that a field is absent. */
type Side = 'request' | 'answer'

/** The fields of an object as one table, those of inner objects below it with their path. Named schemas are links. */
export function fieldTable(schema: Schema, side: Side, caption: string): Html {
  return html`<table role="table">
    <caption>
      ${caption}
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        <th role="columnheader" scope="col">Field</th>
        <th role="columnheader" scope="col">Type</th>
        <th role="columnheader" scope="col">Notes</th>
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rowsOf(schema, '', side)}
    </tbody>
  </table> `
}

function rowsOf(schema: Schema, path: string, side: Side): Html[] {
  const variants = alternatives(schema)
  if (variants.length > 1) return variants.flatMap((variant) => variantRows(variant, path, side))
  const [only = schema] = variants
  if (only.$ref !== undefined) return []
  if (only.items !== undefined) return rowsOf(only.items, `${path}[]`, side)
  return Object.entries(only.properties ?? {}).flatMap(([name, field]) => {
    const place = path === '' ? name : `${path}.${name}`
    return [row(place, field, only.required?.includes(name) ?? false, side), ...rowsOf(field, place, side)]
  })
}

/** Puts the fields of one of several forms below a line that says when they apply. */
function variantRows(variant: Schema, path: string, side: Side): Html[] {
  const tag = Object.entries(variant.properties ?? {}).find(([, field]) => field.const !== undefined)
  if (tag === undefined) return rowsOf(variant, path, side)
  const [name, { const: value }] = tag
  const place = path === '' ? name : `${path}.${name}`
  const heading = html`<tr role="row" class="variant">
    <th role="cell" colspan="3" scope="rowgroup">where <code>${place}</code> is <code>${value}</code></th>
  </tr> `
  const { [name]: _, ...others } = variant.properties ?? {}
  return [heading, ...rowsOf({ ...variant, properties: others }, path, side)]
}

function row(path: string, field: Schema, isRequired: boolean, side: Side): Html {
  const required = isRequired && side === 'request' ? html` <span class="required">required</span>` : undefined
  // The description of a value that may be null is found on its non-null alternative.
  const note = field.description ?? alternatives(field).find(({ description }) => description)?.description
  const notes = note === undefined ? undefined : inline(note)
  return html`<tr role="row">
    <th role="rowheader" scope="row"><code>${path}</code>${required}</th>
    <td role="cell">${typeOf(field, side)}</td>
    <td role="cell">${notes}</td>
  </tr> `
}

function typeOf(schema: Schema, side: Side): Html {
  const named = unique(alternatives(schema).map((each) => describe(each, side)))
  if (side === 'answer' && isNullable(schema)) named.push(html`null`)
  return join(named, ' or ')
}

function describe(schema: Schema, side: Side): Html {
  if (schema.$ref !== undefined) {
    const name = schema.$ref.split('/').at(-1) ?? ''
    return html`<a href="#schema-${name}">${name}</a>`
  }
  if (schema.const !== undefined) return html`<code>${schema.const}</code>`
  if (schema.enum !== undefined)
    return join(
      schema.enum.map((value) => html`<code>${value}</code>`),
      ', ',
    )
  if (schema.items !== undefined) return html`array of ${typeOf(schema.items, side)}${bounds(schema)}`
  return html`${typesOf(schema).join(' or ') || 'any'}${bounds(schema)}`
}

function bounds({ minimum, maximum, maxItems, maxLength }: Schema): string {
  if (minimum !== undefined && maximum !== undefined) return `, ${minimum} to ${maximum}`
  if (minimum !== undefined) return `, at least ${minimum}`
  if (maximum !== undefined) return `, at most ${maximum}`
  if (maxItems !== undefined) return `, at most ${maxItems}`
  return maxLength === undefined ? '' : `, at most ${maxLength} characters`
}

/** The forms a value may have, null left out and nested choices laid flat. */
function alternatives(schema: Schema): Schema[] {
  const choices = schema.anyOf ?? schema.oneOf
  if (choices === undefined) return schema.type === 'null' ? [] : [schema]
  return choices.flatMap(alternatives)
}

function isNullable(schema: Schema): boolean {
  const choices = schema.anyOf ?? schema.oneOf ?? []
  return (
    schema.type === 'null' || (Array.isArray(schema.type) && schema.type.includes('null')) || choices.some(isNullable)
  )
}

function typesOf({ type }: Schema): string[] {
  const types = type === undefined ? [] : typeof type === 'string' ? [type] : type
  return types.filter((each) => each !== 'null')
}

function unique(pieces: readonly Html[]): Html[] {
  return [...new Map(pieces.map((piece) => [piece.html, piece])).values()]
}
