import type * as yaml from 'yaml'

/** What is wrong with the text of the file as YAML, whatever it says. */
type SyntaxFault = { readonly line: number; readonly column: number; readonly message: string }

/**
 * Of each line only the first fault, because the parser's others follow from it. Once a word has no place, the parser
 * complains of every word after it and shows each, secrets too: only the first of those complaints is kept.
 */
export function syntaxFaults(text: string, errors: readonly yaml.YAMLParseError[]): SyntaxFault[] {
  const ordered = errors.map((error) => explain(text, error)).toSorted((a, b) => a.start - b.start || a.rank - b.rank)
  const lost = ordered.findIndex(({ isLost }) => isLost)
  const found = lost < 0 ? ordered : ordered.slice(0, lost + 1)
  return found
    .filter(({ line }, at) => found[at - 1]?.line !== line)
    .map(({ line, column, message }) => ({ line, column, message }))
}

type Explained = SyntaxFault & { readonly start: number; readonly rank: number; readonly isLost: boolean }

function explain(text: string, { code, message, linePos, pos: [start] }: yaml.YAMLParseError): Explained {
  const theirs = text.startsWith('${', start - 1) ? variable : `${code} ${message}`
  const rank = inOurWords.findIndex(([pattern]) => pattern.test(theirs))
  const { line, col: column } = linePos?.[0] ?? { line: 1, col: 1 }
  return {
    line,
    column,
    message: inOurWords[rank]?.[1] ?? withoutPlace(message),
    start,
    rank: rank < 0 ? inOurWords.length : rank,
    isLost: lostPlace.test(theirs),
  }
}

// Who writes a pattern of model ids does not know that YAML means something else by a star.
export const quotedStar = 'a text that begins with * or & is written in quotes'

/** Stands for the parser's code where it took the bracket of a variable for one of YAML. */
const variable = 'VARIABLE'

const lostPlace = /^UNEXPECTED_TOKEN .* in YAML (?:stream|document)/

/**
 * By the parser's code and message, which name its functions or parts of its grammar, or show what stands in the file.
 * Where two complain of one place, the upper one says what is wrong.
 */
const inOurWords: readonly (readonly [RegExp, string])[] = [
  [/^VARIABLE/, 'between { and }, or [ and ], a variable is written in quotes, such as "${NAME}"'],
  [/^\w+ Missing closing/, 'the closing quote of a text is missing'],
  [/ end with a \}/, 'a closing } is missing, or is not indented far enough'],
  [/ end with a \]/, 'a closing ] is missing, or is not indented far enough'],
  [
    /^BLOCK_IN_FLOW|^MISSING_CHAR Missing , /,
    'between { and }, or [ and ]: a comma or the closing bracket is missing, a text with a colon is not in quotes, or an item has a dash',
  ],
  [
    /^MULTILINE_IMPLICIT_KEY|^MISSING_CHAR Implicit map keys/,
    'a colon is missing after this name, or the line below is indented too far',
  ],
  [
    /^BLOCK_AS_IMPLICIT_KEY/,
    'a name with a colon follows where a value is expected: write a text with a colon in quotes',
  ],
  [
    /^BAD_SCALAR_START|^UNEXPECTED_TOKEN Block scalar header|^TAG_RESOLVE_FAILED/,
    'a text that begins with @, %, |, >, !, a comma or a backquote is written in quotes',
  ],
  [/^MULTIPLE_DOCS/, 'a second document begins here, but a file may have only one: remove the ---'],
  [/^DUPLICATE_KEY/, 'this name stands above already: remove one of the two'],
  [/^BAD_ALIAS/, quotedStar],
  [/^UNEXPECTED_TOKEN .* on same line with key/, 'the first item with a dash begins on a line of its own'],
  [
    /^UNEXPECTED_TOKEN .* at node end/,
    'the value before this has ended: nothing may follow it, and a new name begins in the column of those above it',
  ],
  [lostPlace, 'this has no place here: a bracket closes none that is open, or a line is indented too little'],
]

/** Drops what the parser adds: the position again at the end of the first line, and an excerpt of the file below it. */
function withoutPlace(message: string): string {
  return (message.split('\n')[0] ?? message).replace(/ at line \d+, column \d+:$/, '')
}
