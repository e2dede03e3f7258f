/** Text that is HTML already; everything else is escaped where it is put in. */
export type Html = { readonly html: string }

type Content = Html | string | number | undefined | readonly Content[]

/** A tagged template: `html\`<p>${text}</p>\`` escapes `text`, and takes lists and other pieces of HTML as they are. */
export function html(strings: TemplateStringsArray, ...values: readonly Content[]): Html {
  return { html: strings.reduce((text, piece, index) => text + render(values[index - 1]) + piece) }
}

function render(value: Content): string {
  if (value === undefined) return ''
  if (typeof value === 'object' && 'html' in value) return value.html
  if (typeof value === 'object') return value.map(render).join('')
  return escape(String(value))
}

function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;')
}

/** Paragraphs and `code`: all that descriptions use. */
export function paragraphs(text: string): Html {
  return html`${text.split('\n\n').map((paragraph) => html`<p>${inline(paragraph)}</p> `)}`
}

export function inline(text: string): Html {
  return html`${text.split('`').map((piece, index) => (index % 2 === 1 ? html`<code>${piece}</code>` : piece))}`
}

export function join(pieces: readonly Html[], between: string): Html {
  return html`${pieces.flatMap((piece, index) => (index === 0 ? [piece] : [between, piece]))}`
}
