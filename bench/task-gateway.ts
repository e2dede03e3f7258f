import { vendorKey } from './fixtures.ts'
import { serveMeasured } from './gateway.ts'

/** Turnpike as it is shipped, in real mode, so that it polls the simulators at the pace that real vendors can bear. */
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

await serveMeasured(settings, dataFolder)
