import { silentLog } from '../src/base/log.ts'
import { readEnvironment } from '../src/config/environment.ts'
import { readConfigFile } from '../src/config/file.ts'
import { openGateway } from '../src/gateway.ts'
import type { GatewayOptions } from '../src/foundation.ts'
import { reportTo } from './control.ts'
import { benchKey } from './fixtures.ts'

/** Turnpike as it is served, in a process that a benchmark measures; only its log and perhaps its billing differ. */
export async function serveMeasured(
  settings: string,
  dataFolder: string,
  more: Pick<GatewayOptions, 'billing'> = {},
): Promise<void> {
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
    ...more,
  })
  reportTo(process, Number(new URL(gateway.url).port))
}
