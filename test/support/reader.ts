import { expect } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { drawImage } from '../../src/sandbox/files/image.ts'
import type { TestGateway } from './gateway.ts'

/** What a reader has who pastes an example into a shell, beside a gateway and its key. */
export const hasShell = Bun.which('bash') !== null && Bun.which('curl') !== null

/** Puts into a folder what examples need: the image that is edited, and settings of curl. */
export function furnish(folder: string, curlSettings: readonly string[] = []): void {
  writeFileSync(join(folder, 'lighthouse.png'), drawImage({ width: 256, height: 256, format: 'png', seed: 1 }))
  // Without the first, curl takes a refusal for a success; without the others, its progress looks like a complaint.
  const settings = ['fail-with-body', 'silent', 'show-error', ...curlSettings]
  writeFileSync(join(folder, '.curlrc'), `${settings.join('\n')}\n`)
}

type Place = {
  readonly gateway: Pick<TestGateway, 'url' | 'key'>
  readonly folder: string
  readonly variables?: Readonly<Record<string, string>>
}

/** Runs an example in a furnished folder, expects it to end without a complaint, and gives what it said. */
export async function runExample(
  command: readonly string[],
  { gateway, folder, variables = {} }: Place,
): Promise<string> {
  const child = Bun.spawn([...command], {
    cwd: folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      CURL_HOME: folder,
      TURNPIKE_URL: gateway.url,
      TURNPIKE_KEY: gateway.key,
      ...variables,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [said, complaints] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  // An example that works and warns, of a deprecated model for instance, is not one to begin with.
  expect({ exit: child.exitCode, complaints }).toEqual({ exit: 0, complaints: '' })
  return said
}
