import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseDocument } from 'yaml'
import { z } from 'zod'
import { systemClock } from '../src/base/clock.ts'
import { readConfigFile } from '../src/config/file.ts'
import { channelEntry, fileSchema } from '../src/config/schema.ts'
import { planMarket } from '../src/plan.ts'

const text = readFileSync(join(import.meta.dir, '../turnpike.example.yaml'), 'utf8')

/** Every setting as `limits.attemptsMax`; what lists and records hold is the operator's own. */
function settingsOf(schema: z.core.JSONSchema._JSONSchema, prefix = ''): string[] {
  if (typeof schema === 'boolean' || schema.properties === undefined) return []
  return Object.entries(schema.properties).flatMap(([name, inner]) => [
    prefix + name,
    ...settingsOf(inner, `${prefix}${name}.`),
  ])
}

/** The file with its commented examples in force, each in place of the empty default above it. */
function uncommented(): string {
  return text.replaceAll(/^\w+: (?:\[\]|\{\})\n(?=#\w)/gm, '').replaceAll(/^( *)#(?=\S|  )/gm, '$1')
}

describe('turnpike.example.yaml', () => {
  const schema = z.toJSONSchema(fileSchema, { io: 'input' })

  test('its settings are the defaults', () => {
    expect(readConfigFile('example', text, {}).settings).toEqual(readConfigFile('empty', '', {}).settings)
  })

  test('every setting of the schema is in the file, as a value or as a commented example', () => {
    const shown = parseDocument(text).toJS()
    const examples = parseDocument(uncommented()).toJS()
    const has = (value: unknown, path: readonly string[]): boolean =>
      path.length === 0 ||
      (typeof value === 'object' && value !== null && path[0] !== undefined && path[0] in value
        ? has((value as Record<string, unknown>)[path[0]], path.slice(1))
        : false)
    const settings = settingsOf(schema)
    expect(settings).toContain('limits.attemptsMax')
    // These have no default: their value depends on other settings.
    const absent = settings.filter((path) => !has(shown, path.split('.')))
    expect(absent.filter((path) => !path.startsWith('artifacts.s3.'))).toEqual([
      'sandbox',
      'artifacts.s3',
      'mcp.port',
      'publicUrl',
    ])
    expect(settings.filter((path) => !has(examples, path.split('.')))).toEqual([])
  })

  test('every setting has a comment above it', () => {
    const lines = text.split('\n')
    const uncommentedSettings = lines.filter((line, index) => {
      const isSetting = /^\s+\w+: /.test(line) || /^\w+: \S/.test(line)
      const before = lines[index - 1] ?? ''
      return isSetting && !before.trim().startsWith('# ')
    })
    expect(uncommentedSettings).toEqual([])
  })

  test('its commented examples are valid settings for a start', () => {
    const keys = { OPENAI_API_KEY: 'a', OPENAI_SECOND_KEY: 'b', OPENROUTER_API_KEY: 'c' }
    const variables = { ...keys, S3_ACCESS_KEY_ID: 'd', S3_SECRET_ACCESS_KEY: 'e' }
    const file = readConfigFile('example', uncommented(), variables)
    const plan = planMarket({ file, variables, hasRealAccount: false, clock: systemClock })
    expect(plan.mode).toBe('real')
    expect(plan.configured.map(({ id }) => id)).toEqual(['openai-main', 'openai-second', 'router', 'local'])
    for (const id of ['house-chat', 'my-llama']) expect([...plan.catalogue.models.keys()]).toContain(id)
    expect(plan.catalogue.unsold).toContainEqual({ id: 'o3', why: 'hidden by the operator' })
    const written = uncommented()
    expect(Object.keys(channelEntry.shape).filter((name) => !written.includes(` ${name}: `))).toEqual([])
    expect(file.settings.exchange).toEqual({ CNY: '0.14' })
  })
})
