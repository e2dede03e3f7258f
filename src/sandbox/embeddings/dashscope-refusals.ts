import type { InputRefusals } from './ask.ts'

/**
 * Alibaba passes on the messages of the algorithm behind its gateway, in its own protocol and in the compatible one.
 */
export function dashscopeRefusals(refuse: (message: string) => Error): InputRefusals {
  const say = (message: string): Error =>
    refuse(`<400> InternalError.Algo.InvalidParameter: ${message}: input.contents`)
  const wrongLength = (most: number): Error => say(`Range of input length should be [1, ${most}]`)
  return {
    missing: () => say('Field required'),
    empty: () => say('Value error, contents must not be empty.'),
    wrongType: () => say('Value error, contents is neither str nor list of str.'),
    tooMany: (_, most) => say(`Value error, batch size is invalid, it should not be larger than ${most}.`),
    tooLong: (_, __, most) => wrongLength(most),
    batchTooLong: (_, most) => wrongLength(most),
  }
}
