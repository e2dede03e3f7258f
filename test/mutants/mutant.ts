/** A change to the source that a careless hand might make, and the tests that must notice. */
export type Mutant = {
  readonly name: string
  /** From the root of the project. */
  readonly file: string
  /** The text as it stands in the file, once. Where the code has moved on, the mutant must be written anew. */
  readonly from: string
  readonly to: string
  /** Run together; at least one test of them must fail. */
  readonly tests: readonly string[]
}
