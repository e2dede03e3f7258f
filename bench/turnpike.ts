import { silentLog } from '../src/base/log.ts'
import { makeCountingBilling } from '../src/billing/counting.ts'
import { readEnvironment } from '../src/config/environment.ts'
import { readConfigFile } from '../src/config/file.ts'
import { openGateway } from '../src/gateway.ts'
import { reportTo } from './control.ts'
import { benchKey, vendorKey } from './fixtures.ts'

/** Turnpike as it is served, in real mode with one channel; only its billing and its log are chosen by the bench. */
const [upstream = '', billing = 'counting', dataFolder = ''] = process.argv.slice(2)

const settings = `
channels:
  - { id: bench, vendor: openai, keys: ["${vendorKey}"], baseUrl: "${upstream}/v1" }
  - { id: bench-messages, vendor: anthropic, keys: ["${vendorKey}"], baseUrl: "${upstream}" }
billing: { mode: ${billing === 'strict' ? 'strict' : 'leased'} }
`

const gateway = await openGateway({
  environment: readEnvironment({
    PORT: '0',
    ADMIN_PORT: '0',
    TURNPIKE_DATA: dataFolder,
    TURNPIKE_BOOTSTRAP_KEY: benchKey,
  }),
  file: readConfigFile('bench.yaml', settings, {}),
  variables: {},
  log: silentLog,
  ...(billing === 'counting' && { billing: makeCountingBilling }),
})

reportTo(process, Number(new URL(gateway.url).port))
