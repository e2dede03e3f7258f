import { scrub } from '../base/scrub.ts'
import { codeOf } from '../base/system-errors.ts'
import { widthOf } from './text-width.ts'

/** What every command prints with: lines and tables for people, one JSON document for machines. */
export function say(line = ''): void {
  process.stdout.write(`${line}\n`)
}

export function sayJson(value: unknown): void {
  say(JSON.stringify(value, null, 2))
}

/**
 * Makes a command fail if its output cannot be written, so that no script takes half a report for a whole one. A reader
 * that has seen enough, such as `head`, is no failure.
 */
export function failWithoutOutput(): void {
  let isTold = false
  process.stdout.on('error', (thrown: Error) => {
    if (isTold || codeOf(thrown) === 'EPIPE') return
    isTold = true
    process.stderr.write(`turnpike: the output cannot be written: ${thrown.message}\n`)
    process.exitCode = 1
  })
}

/** Goes to stderr, so that a script that reads the output is not disturbed. */
export function warn(text: string): void {
  console.error(`turnpike: warning: ${text}`)
}

export type Column<Row> = {
  readonly name: string
  readonly align?: 'right'
  readonly show: (row: Row) => string
}

const gap = '  '
const indent = '    '

/**
 * Aligned columns with their names above. Where there is no room for all, the last ones follow on indented lines.
 * A line ends where its text does.
 */
export function table<Row>(columns: readonly Column<Row>[], rows: readonly Row[], room = lineWidthMax()): string {
  const lines = [columns.map(({ name }) => name), ...rows.map((row) => columns.map(({ show }) => printable(show(row))))]
  const widths = columns.map((_, index) => Math.max(...lines.map((cells) => widthOf(cells[index] ?? ''))))
  const separators = separatorsOf(widths, room)
  const pad = (cell: string, index: number) => {
    const blank = ' '.repeat((widths[index] ?? 0) - widthOf(cell))
    return separators[index] + (columns[index]?.align === 'right' ? blank + cell : cell + blank)
  }
  return lines.map((cells) => cells.map(pad).join('').replaceAll(/ +$/gm, '')).join('\n')
}

/** What stands before each column: nothing, a gap or, where the line would be too long with it, a new line. */
function separatorsOf(widths: readonly number[], room: number): string[] {
  let used = 0
  return widths.map((width, index) => {
    if (index > 0 && used + gap.length + width > room) {
      used = indent.length + width
      return `\n${indent}`
    }
    const separator = index === 0 ? '' : gap
    used += separator.length + width
    return separator
  })
}

/** Infinite except on a terminal, so that scripts get each row in one line. */
function lineWidthMax(): number {
  // A terminal that does not know its width says 0.
  return process.stdout.isTTY && process.stdout.columns > 0 ? process.stdout.columns : Infinity
}

/** Names and values below each other. */
export function sheet(facts: Readonly<Record<string, string>>): string {
  const width = Math.max(...Object.keys(facts).map((name) => name.length))
  return Object.entries(facts)
    .map(([name, value]) => `${name.padEnd(width)}  ${printable(value)}`)
    .join('\n')
}

/** Replaces characters that end a line, turn the rest of it around or steer the terminal: names may have any. */
function printable(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu, '?')
}

/** To the minute, in the time zone that every log of the gateway uses. */
export function showTime(unixMs: number): string {
  return `${new Date(unixMs).toISOString().slice(0, 16).replace('T', ' ')}Z`
}

/** A number with its noun: `1 call`, `2 calls`. */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`
}

/** Quotes a word so that it can be pasted into a shell. */
export function quoted(word: string): string {
  return /^[\w.@-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

/** An account, for a command to be pasted: by its id if a terminal would not show its name as it is. */
export function accountToPaste({ id, name }: { readonly id: string; readonly name: string }): string {
  return quoted(printable(name) === name ? name : id)
}

const secretName = /KEY|SECRET|TOKEN|PASSWORD|DATABASE_URL/i
const secretCharactersMin = 8

/**
 * Removes what looks like a secret and, since vendors' keys come in every form, the value of every variable whose name
 * says that it is one.
 */
export function withoutSecretsOf(text: string, variables: Readonly<Record<string, string | undefined>>): string {
  let clean = text
  for (const [name, value] of Object.entries(variables)) {
    if (value === undefined || value.length < secretCharactersMin || !secretName.test(name)) continue
    clean = clean.replaceAll(value, '[redacted]')
  }
  return scrub(clean)
}
