import { describe, expect, test } from 'bun:test'
import { systemClock } from '../../src/base/clock.ts'
import { capabilities } from '../../src/capabilities/capability.ts'
import { readConfigFile } from '../../src/config/file.ts'
import { planMarket, servedModels } from '../../src/plan.ts'
import { vendors } from '../../src/vendors/index.ts'
import type { Vendor } from '../../src/vendors/vendor.ts'

const page = await Bun.file(new URL('../../docs/vendors.md', import.meta.url)).text()

function rowOf(vendor: Vendor): string {
  const variables = vendor.environment.map((name) => `\`${name}\``).join(', ')
  const address = vendor.baseUrl === '' ? 'none: the channel gives its `baseUrl`' : `\`${vendor.baseUrl}\``
  const serves = capabilities.filter((capability) => vendor[capability] !== undefined).join(', ')
  return `| \`${vendor.id}\` | ${variables || 'none'} | ${address} | ${serves} |`
}

describe('docs/vendors.md', () => {
  test('its table lists exactly the vendors that are registered, in order', () => {
    const rows = page.split('\n').filter((line) => line.startsWith('| `'))
    expect(rows).toEqual([...vendors.values()].map(rowOf).toSorted())
  })

  test('it describes the key of each vendor whose key has a special form', () => {
    for (const { keyForm, environment } of vendors.values()) {
      if (keyForm === undefined) continue
      for (const name of environment)
        expect(page.replaceAll(/\s+/g, ' ')).toContain(`\`${name}\` is ${words(keyForm.says)}`)
    }
  })

  test('its settings are valid for a start', () => {
    const yaml = /```yaml\n([^]*?)```/.exec(page)?.[1] ?? ''
    const variables = { AZURE_OPENAI_API_KEY: 'k' }
    const file = readConfigFile('vendors.md', yaml, variables)
    const { configured, catalogue } = planMarket({ file, variables, hasRealAccount: false, clock: systemClock })
    expect(configured.map(({ id }) => id)).toEqual(['azure-main'])
    expect([...servedModels(catalogue, configured).keys()]).toEqual(['gpt-4o-mini', 'gpt-4o-mini-2024-07-18'])
  })
})

/** With code marked up as on the page. */
function words(says: string): string {
  return says.replace('AK:SK', '`AK:SK`')
}
