import packageJson from '../../package.json'
import { probeGuard } from '../base/probe-guard.ts'

/** Requires the exact version of Bun before anything opens: other versions have failed in ways that cost money. */
export function checkVersion(): void {
  const wanted = packageJson.dependencies.bun
  if (process.versions.bun === wanted) return
  throw new Error(
    `Turnpike runs on Bun ${wanted}, this is ${process.versions.bun ?? 'not Bun'}: start it with npm start`,
  )
}

/** Also checks what can only be found out by trying. That takes 25 ms, which a start spends beside other work. */
export async function checkRuntime(): Promise<void> {
  checkVersion()
  await probeGuard()
}
