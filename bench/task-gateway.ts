import { silentLog } from '../src/base/log.ts'
import { readEnvironment } from '../src/config/environment.ts'
import { readConfigFile } from '../src/config/file.ts'
import { openGateway } from '../src/gateway.ts'
import { reportTo } from './control.ts'
import { benchKey, vendorKey } from './fixtures.ts'

/** Turnpike as it is shipped, in real mode: simulators are polled at the pace that their vendors bear. */
const [upstream = '', dataFolder = '', channels = '1', pollSeconds = '5'] = process.argv.slice(2)

const dashscope = Array.from(
  { length: Number(channels) },
  (_, n) => `  - { id: video-${n}, vendor: dashscope, keys: ["${vendorKey}"], baseUrl: "${upstream}/dashscope" }\n`,
)
const settings = `
channels:
  - { id: chat, vendor: openai, keys: ["${vendorKey}"], baseUrl: "${upstream}/openai/v1" }
${dashscope.join('')}
tasks: { pollSeconds: ${pollSeconds} }
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
})

reportTo(process, Number(new URL(gateway.url).port))
