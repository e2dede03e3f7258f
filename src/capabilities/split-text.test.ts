import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { charactersOf } from './speech.ts'
import { splitText } from './split-text.ts'

describe('the splitting of a text', () => {
  test.each([
    ['only if it is too long', 'One. Two.', 20, ['One. Two.']],
    ['after sentences, with the space', 'One one. Two two! Three?', 12, ['One one. ', 'Two two! ', 'Three?']],
    ['after the last sentence that fits', 'A b. C d. E f. G', 11, ['A b. C d. ', 'E f. G']],
    ['after lines', 'first line\nsecond line', 15, ['first line\n', 'second line']],
    ['after Chinese sentences', '你好。再见！好吗？', 4, ['你好。', '再见！', '好吗？']],
    ['after a clause where no sentence ends', 'one two, three four', 12, ['one two, ', 'three four']],
    ['after a word where no clause ends', 'one two three', 8, ['one two ', 'three']],
    ['inside a word where nothing else is possible', 'abcdefgh', 3, ['abc', 'def', 'gh']],
    ['before a number rather than inside it', 'It is 3.14159 or so', 9, ['It is ', '3.14159 ', 'or so']],
    ['between characters of two code units', '😀😀😀', 2, ['😀😀', '😀']],
    ['after a sentence that fills the limit exactly', 'Abc. Def.', 4, ['Abc.', ' Def', '.']],
  ])('a text is split %s', (_, text, charactersMax, pieces) => {
    expect(splitText(text, charactersMax)).toEqual(pieces)
  })

  test('no text is lost, and no piece is too long or silent', () => {
    const word = fc.stringMatching(/^[a-z。.!?,😀你 \n]{1,8}$/u)
    fc.assert(
      fc.property(fc.array(word, { minLength: 1, maxLength: 60 }), fc.integer({ min: 12, max: 60 }), (words, most) => {
        const text = `x${words.join('').replaceAll(/\s{3,}/g, ' ')}`
        const pieces = splitText(text, most)
        expect(pieces.join('')).toBe(text)
        for (const piece of pieces) {
          expect(piece.trim()).not.toBe('')
          expect(charactersOf(piece.trimEnd())).toBeLessThanOrEqual(most)
        }
      }),
    )
  })
})
