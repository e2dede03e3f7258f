import { existsSync } from 'node:fs'
import { chromium, type Browser } from 'playwright-core'

const executablePath = process.env['CHROMIUM_PATH'] ?? '/usr/bin/chromium'

export const hasBrowser = existsSync(executablePath)
if (!hasBrowser) {
  process.stderr.write(`skipped: no browser at ${executablePath}; CHROMIUM_PATH names another\n`)
}

export const browserTimeoutMs = 120_000

/** The browser's own sandbox does not start as root, and these tests only show it our own pages. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({ executablePath, args: ['--no-sandbox'] })
}
