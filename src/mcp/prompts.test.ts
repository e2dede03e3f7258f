import { describe, expect, test } from 'bun:test'
import { getPrompt, prompts } from './prompts.ts'

const textOf = (name: string, given: Readonly<Record<string, string>>) =>
  getPrompt(name, given)
    .messages.map(({ content }) => content.text)
    .join()

/** Every argument, with a text that stands nowhere else. */
const filled = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, `<the ${name}>`]))

describe.each(prompts)('the prompt $name', ({ name, arguments: taken }) => {
  const required = taken.flatMap((argument) => (argument.required === true ? [argument.name] : []))
  const all = taken.map((argument) => argument.name)

  test('says everything that it is given', () => {
    const text = textOf(name, filled(all))
    for (const said of Object.values(filled(all))) expect(text).toContain(said)
  })

  test('is complete with what it requires, and blank arguments are absent', () => {
    const text = textOf(name, filled(required))
    for (const said of Object.values(filled(required))) expect(text).toContain(said)
    expect(text).not.toMatch(/undefined|null/)
    const blank = Object.fromEntries(all.map((argument) => [argument, '']))
    expect(textOf(name, { ...blank, ...filled(required) })).toBe(text)
  })

  test('is refused without what it requires', () => {
    for (const missing of required) {
      const given = filled(all.filter((argument) => argument !== missing))
      expect(() => textOf(name, given)).toThrow(`Missing argument: ${missing}`)
    }
  })
})

test('an unknown prompt is refused by its name', () => {
  expect(() => getPrompt('write_poem', {})).toThrow('Unknown prompt: write_poem')
})
