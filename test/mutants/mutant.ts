/** A careless change to the source, and the tests that must notice it. */
export type Mutant = {
  readonly name: string
  /** From the root of the project. */
  readonly file: string
  /** The text to change, which occurs exactly once in the file. When the code changes, the mutant must be rewritten. */
  readonly from: string
  readonly to: string
  /** Run together; at least one of their tests must fail. */
  readonly tests: readonly string[]
}
