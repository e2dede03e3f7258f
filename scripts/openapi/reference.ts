import { fieldTable } from './fields.ts'
import { html, inline, join, paragraphs, type Html } from './html.ts'
import { style } from './style.ts'
import type { Document, ErrorExample, Operation, Response, Responses, Schema } from './types.ts'

const json = 'application/json'
const icon = `<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='M2 3h12v3H2zM6 6h4v8H6z' fill='#2563c9'/></svg>`

/** The page at `/docs`: the whole contract in one file that loads nothing else. */
export function makeReference(document: Document): string {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  )
  const schemas = ['ChatMessage', 'Usage', 'Model'] as const
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <title>${document.info.title} reference</title>
        <link rel="icon" href="data:image/svg+xml,${encodeURIComponent(icon)}" />
        <style>
          ${{ html: style }}
        </style>
      </head>
      <body>
        <a class="skip" href="#content">Skip to the content</a>
        <header>
          <h1>${document.info.title} reference</h1>
          <p>Version ${document.info.version} · <a href="openapi.json">OpenAPI document</a></p>
        </header>
        <nav aria-label="Contents">
          <ul>
            <li><a href="#start">Before you start</a></li>
            ${operations.map(({ operation }) => html`<li><a href="#${operation.operationId}">${operation.summary}</a></li> `)}${schemas.map((name) => html`<li><a href="#schema-${name}">${name}</a></li> `)}
            <li><a href="#errors">Errors</a></li>
          </ul>
        </nav>
        <main id="content">
          ${start(document)}${operations.map(({ method, path, operation }) => section(method, path, operation, document))}${schemas.map((name) => schemaSection(name, document))}${errors(document.components.responses)}
        </main>
      </body>
    </html> `
  return page.html
}

/** `{address}` is filled in when the page is served, because only the gateway knows where it is reached. */
function start(document: Document): Html {
  return html`<section id="start">
    <h2>Before you start</h2>
    ${paragraphs(document.info.description)}
    <p>
      The examples take the address and the key from the environment. The address is where this page came from; a key
      begins with <code>sk-</code>, and the operator makes one with <code>npx turnpike keys create</code>. Examples
      about one video take its <code>id</code> from <code>TASK</code>.
    </p>
    <pre tabindex="0"><code>export TURNPIKE_URL={address}
export TURNPIKE_KEY=sk-…
export TASK=vid_…</code></pre>
    <p>
      Every request carries the key as <code>Authorization: Bearer sk-…</code>. Every answer carries an
      <code>x-request-id</code> and, where the key has limits,
      <code>x-ratelimit-{limit,remaining,reset}-{requests,tokens}</code>.
    </p>
  </section> `
}

function section(method: string, path: string, operation: Operation, document: Document): Html {
  const { operationId, summary, description, responses } = operation
  const answer = responses['200']
  return html`<section id="${operationId}">
    <h2>${summary}</h2>
    <p class="endpoint"><span class="method">${method}</span> <code>${path}</code></p>
    ${paragraphs(description)} ${requestTables(operation, document)}
    <h3>Example</h3>
    ${operation['x-codeSamples'].map(example)}
    <h3>Answer</h3>
    ${answer !== undefined && 'content' in answer ? answerTables(answer, document) : undefined}
    <h3>Errors</h3>
    ${errorTable(
      Object.values(responses).flatMap((response) => ('$ref' in response ? [nameOf(response.$ref)] : [])),
      document.components.responses,
    )}
  </section> `
}

const captions = { path: 'In the path', query: 'In the query', header: 'Headers' } as const

function requestTables({ parameters, requestBody }: Operation, document: Document): Html | undefined {
  const bodies = Object.entries(requestBody?.content ?? {})
  const tables = [
    ...(['path', 'query', 'header'] as const).flatMap((place) => {
      const found = parameters.filter((parameter) => parameter.in === place)
      const properties = found.map(({ name, description, schema }) => [name, { ...schema, description }] as const)
      const required = found.filter((parameter) => parameter.required).map(({ name }) => name)
      const fields = { properties: Object.fromEntries(properties), required }
      return found.length === 0 ? [] : [fieldTable(fields, 'request', captions[place])]
    }),
    ...bodies.flatMap(([type, { schema }]) =>
      formTables(schema, 'request', type === json ? 'Fields of the JSON body' : 'Fields of the form', document),
    ),
  ]
  return tables.length === 0
    ? undefined
    : html`<h3>Request</h3>
        ${tables}`
}

function example({ label, source }: Operation['x-codeSamples'][number], index: number): Html {
  const state = { html: index === 0 ? ' open' : '' }
  return html`<details${state}><summary>${label}</summary><pre tabindex="0"><code>${source}</code></pre></details>`
}

const contentCaptions: ReadonlyMap<string, string> = new Map([
  [json, 'Fields of the answer'],
  ['text/event-stream', 'Fields of each event of a stream'],
])

function answerTables(answer: Response, document: Document): Html {
  const headers = Object.entries(answer.headers).map(([name, { $ref }]) => {
    const description = document.components.headers[nameOf($ref)]?.description ?? ''
    return html`<li><code>${name}</code>: ${inline(description)}</li> `
  })
  const contents = Object.entries(answer.content)
  const tables = contents.flatMap(([type, { schema }]) => {
    const caption = contentCaptions.get(type)
    return caption === undefined ? [] : formTables(schema, 'answer', caption, document)
  })
  const bare = contents.flatMap(([type]) => (contentCaptions.has(type) ? [] : [html`<code>${type}</code>`]))
  if (bare.length > 0) tables.unshift(html`<p>As it is asked for: ${join(bare, ', ')}.</p> `)
  return html`${paragraphs(answer.description)}
    <ul>
      ${headers}
    </ul>
    ${tables}`
}

/** One table or, where the schema has several forms that all have a title, one for each. */
function formTables(schema: Schema, side: 'request' | 'answer', caption: string, document: Document): Html[] {
  const whole = resolve(schema, document)
  const forms = (whole.anyOf ?? []).map((form) => resolve(form, document))
  if (forms.length === 0 || forms.some(({ title }) => title === undefined)) return [fieldTable(whole, side, caption)]
  return forms.map((form) => fieldTable(form, side, `${caption}, ${form.title}`))
}

function schemaSection(name: string, document: Document): Html {
  const schema = document.components.schemas[name] ?? {}
  return html`<section id="schema-${name}">
    <h2>${name}</h2>
    ${fieldTable(schema, name === 'ChatMessage' ? 'request' : 'answer', `Fields of ${name}`)}
  </section> `
}

function errors(responses: Responses): Html {
  const example = responses['Error400']?.content[json]?.examples?.['bad-request']?.value
  return html`<section id="errors">
    <h2>Errors</h2>
    <p>
      Most errors have the shape below, always with all four fields. Errors of messages are
      <code>{"type": "error", "error": {"type", "message"}, "request_id"}</code>, errors of the native form of images
      are <code>{"code", "message", "request_id"}</code>, and a 402 of edits and speech has only <code>message</code> in
      its <code>error</code>. A vendor's own refusal is passed on as it came: some of these fields may be null or
      missing, and there may be others. If <code>x-should-retry</code> is <code>false</code>, another try cannot help.
    </p>
    <pre tabindex="0"><code>${JSON.stringify(example, null, 2)}</code></pre>
    ${errorTable(
      Object.keys(responses).filter((name) => /^Error\d/.test(name)),
      responses,
    )}
  </section> `
}

function errorTable(names: readonly string[], responses: Responses): Html {
  const rows = names.flatMap((name) =>
    Object.values(responses[name]?.content[json]?.examples ?? {}).map(
      ({ summary, value }) =>
        html`<tr role="row">
          <th role="rowheader" scope="row">${name.replace(/\D+/, '')}</th>
          <td role="cell">${typeAndCode(value.error)}</td>
          <td role="cell">${inline(summary)}</td>
        </tr> `,
    ),
  )
  return html`<table role="table" class="errors">
    <caption>
      Errors by status
    </caption>
    <thead role="rowgroup">
      <tr role="row">
        <th role="columnheader" scope="col">Status</th>
        <th role="columnheader" scope="col">Type and code</th>
        <th role="columnheader" scope="col">When</th>
      </tr>
    </thead>
    <tbody role="rowgroup">
      ${rows}
    </tbody>
  </table> `
}

function typeAndCode({ type, code }: ErrorExample['error']): Html {
  if (type === undefined) return html`none: only a <code>message</code>`
  return html`<code>${type}</code>${code === undefined ? undefined : html`<br /><code>${code}</code>`}`
}

function resolve(schema: Schema, document: Document): Schema {
  return schema.$ref === undefined ? schema : (document.components.schemas[nameOf(schema.$ref)] ?? {})
}

function nameOf(ref: string): string {
  return ref.split('/').at(-1) ?? ''
}
