import packageJson from '../../package.json'
import { probeGuard } from '../base/probe-guard.ts'

const parallelRequestsMin = 1024

/** The runtime's floor, checked before anything opens: other versions and defaults have failed in ways that cost money. */
export async function checkRuntime(variables: Readonly<Record<string, string | undefined>>): Promise<void> {
  const wanted = packageJson.dependencies.bun
  if (process.versions.bun !== wanted) {
    throw new Error(
      `Turnpike runs on Bun ${wanted}, this is ${process.versions.bun ?? 'not Bun'}: start it with npm start`,
    )
  }
  if (!(Number(variables['BUN_CONFIG_MAX_HTTP_REQUESTS']) >= parallelRequestsMin)) {
    throw new Error(
      'BUN_CONFIG_MAX_HTTP_REQUESTS is not set, so only 256 upstream calls could run at once: use npm start or bin/turnpike',
    )
  }
  await probeGuard()
}
