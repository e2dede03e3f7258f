import { ownIn } from './fields.ts'

/** A refusal as a vendor words it: a status and a sentence. */
export class Refusal extends Error {
  readonly status: number

  constructor(status: number, message: string) {
    super(message)
    this.status = status
  }
}

/** A refusal that also carries the vendor's own code, a word or a number. */
export class CodedRefusal<Code extends string | number = string> extends Refusal {
  readonly code: Code

  constructor(status: number, code: Code, message: string) {
    super(status, message)
    this.code = code
  }
}

/** A vendor's refusals by their code. */
export type RefusalRows = Readonly<Record<string, readonly [status: number, message: string]>>

type RefusalList<Code> = {
  readonly rows: RefusalRows
  /** The usual code of each status. */
  readonly usual: Readonly<Record<number, string>>
  /** The code of every other status: `callers` below 500, `vendors` from 500 on. */
  readonly callers: string
  readonly vendors: string
  readonly codeOf: (name: string) => Code
}

/** The refusals for `sandbox:fail=CODE` and `sandbox:status=NUMBER`. */
export function refusalsIn<Code extends string | number>(list: RefusalList<Code>) {
  const { rows, usual, codeOf } = list

  function errorForCode(name: string): CodedRefusal<Code> {
    const [status, message] = ownIn(rows, name) ?? [400, `The sandbox was asked to fail with ${name}.`]
    return new CodedRefusal(status, codeOf(name), message)
  }

  function errorForStatus(status: number): CodedRefusal<Code> {
    const { code, message } = errorForCode(usual[status] ?? (status >= 500 ? list.vendors : list.callers))
    return new CodedRefusal(status, code, message)
  }

  return { errorForCode, errorForStatus }
}
