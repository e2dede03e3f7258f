import { makeCountingBilling } from '../src/billing/counting.ts'
import { vendorKey } from './fixtures.ts'
import { serveMeasured } from './gateway.ts'

/** Turnpike in real mode with one channel of each protocol, and the billing that is measured. */
const [upstream = '', billing = 'counting', dataFolder = ''] = process.argv.slice(2)

const settings = `
channels:
  - { id: bench, vendor: openai, keys: ["${vendorKey}"], baseUrl: "${upstream}/v1" }
  - { id: bench-messages, vendor: anthropic, keys: ["${vendorKey}"], baseUrl: "${upstream}" }
billing: { mode: ${billing === 'strict' ? 'strict' : 'leased'} }
`

await serveMeasured(settings, dataFolder, billing === 'counting' ? { billing: makeCountingBilling } : {})
