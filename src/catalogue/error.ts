import { writeFieldPath } from '../base/field-path.ts'

export type Path = readonly (string | number)[]

/**
 * A fault in a catalogue file or in the operator's `models:`. The path leads to the field, so that code that has the
 * text of the file can name the line.
 */
export class CatalogueError extends Error {
  override readonly name = 'CatalogueError'
  readonly path: Path
  /** The message without the path before it. */
  readonly reason: string

  constructor(path: Path, reason: string) {
    super(`${writeFieldPath(path)}: ${reason}`)
    this.path = path
    this.reason = reason
  }
}
