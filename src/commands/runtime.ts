import packageJson from '../../package.json'
import { probeGuard } from '../base/probe-guard.ts'

/** The runtime's floor, checked before anything opens: other versions have failed in ways that cost money. */
export async function checkRuntime(): Promise<void> {
  const wanted = packageJson.dependencies.bun
  if (process.versions.bun !== wanted) {
    throw new Error(
      `Turnpike runs on Bun ${wanted}, this is ${process.versions.bun ?? 'not Bun'}: start it with npm start`,
    )
  }
  await probeGuard()
}
