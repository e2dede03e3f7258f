/** A refusal as a vendor words it: a status, and a sentence. */
export class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** One that has a word or a number of the vendor's own beside the status. */
export class CodedRefusal<Code extends string | number = string> extends Refusal {
  readonly code: Code

  constructor(status: number, code: Code, message: string) {
    super(status, message)
    this.code = code
  }
}

/** A vendor's list of them, by what it calls them. */
export type RefusalRows = Readonly<Record<string, readonly [status: number, message: string]>>

type RefusalList<Code> = {
  readonly rows: RefusalRows
  /** What a status is usually called. */
  readonly usual: Readonly<Record<number, string>>
  /** What all others are called: of those the caller is to blame for, and of those the vendor is. */
  readonly callers: string
  readonly vendors: string
  readonly codeOf: (name: string) => Code
}

/** What `sandbox:fail=CODE` and `sandbox:status=NUMBER` come to. */
export function refusalsIn<Code extends string | number>(list: RefusalList<Code>) {
  const { rows, usual, codeOf } = list

  function errorForCode(name: string): CodedRefusal<Code> {
    const [status, message] = rows[name] ?? [400, `The sandbox was asked to fail with ${name}.`]
    return new CodedRefusal(status, codeOf(name), message)
  }

  function errorForStatus(status: number): CodedRefusal<Code> {
    const { code, message } = errorForCode(usual[status] ?? (status >= 500 ? list.vendors : list.callers))
    return new CodedRefusal(status, code, message)
  }

  return { errorForCode, errorForStatus }
}
