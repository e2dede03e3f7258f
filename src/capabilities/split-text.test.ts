import { describe, expect, test } from 'bun:test'
import * as fc from 'fast-check'
import { charactersOf } from './speech.ts'
import { splitText } from './split-text.ts'

describe('the splitting of a text', () => {
  test.each([
    ['not at all where it is short', 'One. Two.', 20, ['One. Two.']],
    ['behind sentences, with the space', 'One one. Two two! Three?', 12, ['One one. ', 'Two two! ', 'Three?']],
    ['behind the last sentence that fits', 'A b. C d. E f. G', 11, ['A b. C d. ', 'E f. G']],
    ['behind lines', 'first line\nsecond line', 15, ['first line\n', 'second line']],
    ['behind sentences of Chinese', '你好。再见！好吗？', 4, ['你好。', '再见！', '好吗？']],
    ['behind clauses where no sentence ends', 'one two, three four', 12, ['one two, ', 'three four']],
    ['behind words where no clause ends', 'one two three', 8, ['one two ', 'three']],
    ['in the middle of a word where there is nothing else', 'abcdefgh', 3, ['abc', 'def', 'gh']],
    ['not inside a number', 'It is 3.14159 or so', 9, ['It is ', '3.14159 ', 'or so']],
    ['not inside a character of two units', '😀😀😀', 2, ['😀😀', '😀']],
    ['behind a sentence that fills it to the last character', 'Abc. Def.', 4, ['Abc.', ' Def', '.']],
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
