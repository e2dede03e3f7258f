import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { silentLog } from '../../src/base/log.ts'
import { readEnvironment } from '../../src/config/environment.ts'
import { readConfigFile } from '../../src/config/file.ts'
import { openGateway } from '../../src/gateway.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

const source = (path: string) => JSON.stringify(join(import.meta.dir, '../../src', path))

/** A start in a process of its own, which ends with it. */
function startAlone(folder: string, yaml: string): string {
  const program = `
    import { silentLog } from ${source('base/log.ts')}
    import { readEnvironment } from ${source('config/environment.ts')}
    import { readConfigFile } from ${source('config/file.ts')}
    import { openGateway } from ${source('gateway.ts')}
    const environment = readEnvironment({ TURNPIKE_DATA: ${JSON.stringify(folder)}, PORT: '0', ADMIN_PORT: '0' })
    const file = readConfigFile('x.yaml', ${JSON.stringify(yaml)}, {})
    const outcome = await openGateway({ environment, file, variables: {}, log: silentLog }).then(() => 'started', String)
    process.stdout.write(outcome, () => process.exit())`
  return Bun.spawnSync([process.execPath, '-e', program], { stderr: 'inherit' }).stdout.toString()
}

test('a start that fails at its last port leaves the first keys to be shown by the next start', async () => {
  const folder = temporaryFolder('first-key')
  const taken = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('') })
  try {
    expect(startAlone(folder, `mcp: { port: ${taken.port} }`)).toContain('is in use')
    const environment = readEnvironment({ TURNPIKE_DATA: folder, PORT: '0', ADMIN_PORT: '0' })
    const file = readConfigFile('x.yaml', '', {})
    const gateway = await openGateway({ environment, file, variables: {}, log: silentLog })
    const { key = '', adminKey = '' } = gateway.firstStart
    await gateway.close()
    expect([key.slice(0, 3), adminKey.slice(0, 4)]).toEqual(['sk-', 'adm-'])
  } finally {
    await taken.stop(true)
  }
}, 120_000)
