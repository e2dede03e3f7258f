import { describe, expect, test } from 'bun:test'
import { assert, nat, property, string } from 'fast-check'
import { splitTokens } from './tokens.ts'

describe('the tokenizer', () => {
  test('words keep the space before them and are split into pieces of six letters', () => {
    expect(splitTokens('Hello, wonderful  world 12345!')).toEqual([
      'Hello',
      ',',
      ' wonder',
      'ful',
      ' ',
      ' world',
      ' 123',
      '45',
      '!',
    ])
  })

  test('a run of one character is one token, and no character is split', () => {
    expect(splitTokens(`${'='.repeat(1_000)}🚀é\n\n日`)).toEqual(['='.repeat(1_000), '🚀', 'é', '\n\n', '日'])
  })

  // The gateway's hold covers the bytes of a request, so a vendor that counts more tokens than bytes would exceed it.
  test('the tokens join to the original text and are never more than its bytes', () => {
    assert(
      property(string({ unit: 'binary', maxLength: 200 }), (text) => {
        const tokens = splitTokens(text)
        expect(tokens.join('')).toBe(text)
        expect(tokens.length).toBeLessThanOrEqual(Buffer.byteLength(text))
      }),
    )
  })

  test('the first tokens of a text are the tokens of its beginning', () => {
    assert(
      property(string({ unit: 'binary', maxLength: 100 }), nat(50), (text, limit) => {
        const first = splitTokens(text, limit)
        expect(splitTokens(first.join(''))).toEqual(first)
      }),
    )
  })
})
